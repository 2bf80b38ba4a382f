-- PUT /clients?id=eq.1
-- values [b'1'], parameters (0, -1)
WITH pgrst_source AS (INSERT INTO "public"."clients"("id", "name") SELECT "pgrst_body"."id", "pgrst_body"."name"
FROM (SELECT $2::json AS json_data) pgrst_payload, LATERAL (SELECT "id", "name"
FROM json_to_record(pgrst_payload.json_data) AS _("id" integer, "name" text)) pgrst_body
WHERE set_config('pgrst.inserted', (coalesce(nullif(current_setting('pgrst.inserted', true), '')::int, 0) + 1)::text, true) <> '0' AND "pgrst_body"."id" = $1
ON CONFLICT("id") DO UPDATE SET "id" = EXCLUDED."id", "name" = EXCLUDED."name"
WHERE set_config('pgrst.inserted', (coalesce(nullif(current_setting('pgrst.inserted', true), '')::int, 0) - 1)::text, true) <> '-1'
RETURNING "public"."clients".*) SELECT NULL AS total, (CASE WHEN count(result) <> 1 THEN ('toft:PGRST115:' || count(result))::int ELSE count(result) END)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status, NULL AS location, nullif(current_setting('pgrst.inserted', true), '') AS inserted
FROM (SELECT "clients".*
FROM "pgrst_source" AS "clients") result;
