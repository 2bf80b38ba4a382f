-- POST /projects?select=name,clients(name)
-- values [], parameters (-1,)
WITH pgrst_source AS (INSERT INTO "public"."projects"("name") SELECT "pgrst_body"."name"
FROM (SELECT $1::json AS json_data) pgrst_payload, LATERAL (SELECT "name"
FROM json_to_record(pgrst_payload.json_data) AS _("name" text)) pgrst_body
RETURNING "public"."projects"."client_id", "public"."projects"."id", "public"."projects"."name") SELECT NULL AS total, count(result)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status, NULL AS location, NULL AS inserted
FROM (SELECT "projects"."name", row_to_json("projects_clients_1".*)::jsonb AS "clients"
FROM "pgrst_source" AS "projects"
LEFT JOIN LATERAL (SELECT "clients_1"."name"
FROM "public"."clients" AS "clients_1"
WHERE "clients_1"."id" = "projects"."client_id") AS "projects_clients_1" ON TRUE) result;
