-- POST /clients
-- values [], parameters (-1,)
WITH pgrst_source AS (INSERT INTO "public"."clients"("id") SELECT "pgrst_body"."id"
FROM (SELECT $1::json AS json_data) pgrst_payload, LATERAL (SELECT "id"
FROM json_to_record(pgrst_payload.json_data) AS _("id" integer)) pgrst_body
ON CONFLICT("id") DO NOTHING
RETURNING 1) SELECT NULL AS total, count(result)::text AS page, ''::text AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status, NULL AS location, NULL AS inserted
FROM (SELECT *
FROM pgrst_source) result;
