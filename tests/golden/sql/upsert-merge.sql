-- POST /clients?on_conflict=id
-- values [], parameters (-1,)
WITH pgrst_source AS (INSERT INTO "public"."clients"("id") SELECT "pgrst_body"."id"
FROM (SELECT $1::json AS json_data) pgrst_payload, LATERAL (SELECT "id"
FROM json_to_record(pgrst_payload.json_data) AS _("id" integer)) pgrst_body
WHERE set_config('pgrst.inserted', (coalesce(nullif(current_setting('pgrst.inserted', true), '')::int, 0) + 1)::text, true) <> '0'
ON CONFLICT("id") DO UPDATE SET "id" = EXCLUDED."id"
WHERE set_config('pgrst.inserted', (coalesce(nullif(current_setting('pgrst.inserted', true), '')::int, 0) - 1)::text, true) <> '-1'
RETURNING 1) SELECT NULL AS total, count(result)::text AS page, ''::text AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status, NULL AS location, nullif(current_setting('pgrst.inserted', true), '') AS inserted
FROM (SELECT *
FROM pgrst_source) result;
