-- GET /projects?select=name.max(),client_id,count(),...clients!inner(id.sum(),name)
-- values [], parameters ()
SELECT NULL::text AS total, count(result)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT MAX("public"."projects"."name"), "public"."projects"."client_id", COUNT("public"."projects".*), SUM("projects_clients_1"."sum") AS "sum", "projects_clients_1"."name"
FROM "public"."projects"
INNER JOIN LATERAL (SELECT "clients_1"."id" AS "sum", "clients_1"."name"
FROM "public"."clients" AS "clients_1"
WHERE "clients_1"."id" = "public"."projects"."client_id") AS "projects_clients_1" ON TRUE GROUP BY "public"."projects"."client_id", "projects_clients_1"."name") result;
