-- GET /rpc/projects_of?client=1&select=id,clients(name)&name=eq.x&limit=2
-- values [b'1', b'x', b'2'], parameters (0, 1, 2)
WITH pgrst_source AS (SELECT "pgrst_call"."client_id", "pgrst_call"."id", "pgrst_call"."name"
FROM "public"."projects_of"("client" := $1::integer) pgrst_call) SELECT NULL::text AS total, count(result)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "projects"."id", row_to_json("projects_clients_1".*)::jsonb AS "clients"
FROM "pgrst_source" AS "projects"
LEFT JOIN LATERAL (SELECT "clients_1"."name"
FROM "public"."clients" AS "clients_1"
WHERE "clients_1"."id" = "projects"."client_id") AS "projects_clients_1" ON TRUE
WHERE "projects"."name" = $2 LIMIT $3) result;
