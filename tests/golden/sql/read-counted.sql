-- GET /clients?select=*,projects!inner(id)&projects.id=eq.1
-- values [b'1'], parameters (0,)
SELECT (SELECT count(*)
FROM (SELECT 1
FROM "public"."clients"
WHERE EXISTS (SELECT 1
FROM "public"."projects" AS "projects_1"
WHERE "projects_1"."id" = $1 AND "projects_1"."client_id" = "public"."clients"."id")) counted)::text AS total, count(result)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "public"."clients".*, COALESCE("clients_projects_1"."clients_projects_1", '[]') AS "projects"
FROM "public"."clients"
INNER JOIN LATERAL (SELECT json_agg("clients_projects_1")::jsonb AS "clients_projects_1"
FROM (SELECT "projects_1"."id"
FROM "public"."projects" AS "projects_1"
WHERE "projects_1"."id" = $1 AND "projects_1"."client_id" = "public"."clients"."id") AS "clients_projects_1") AS "clients_projects_1" ON "clients_projects_1" IS NOT NULL) result;
