-- POST /clients
-- values [], parameters (-1,)
WITH pgrst_source AS (INSERT INTO "public"."clients"("id", "name") SELECT "pgrst_body"."id", "pgrst_body"."name"
FROM (SELECT $1::json AS json_data) pgrst_payload, LATERAL (SELECT "id", "name"
FROM json_to_recordset(pgrst_payload.json_data) AS _("id" integer, "name" text)) pgrst_body
RETURNING 1) SELECT NULL AS total, count(result)::text AS page, ''::text AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status, NULL AS location, NULL AS inserted
FROM (SELECT *
FROM pgrst_source) result;
