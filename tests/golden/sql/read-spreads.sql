-- GET /clients?select=name,...projects(id,...details(color))&projects.order=name.desc
-- values [], parameters ()
SELECT NULL::text AS total, count(result)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "public"."clients"."name", "clients_projects_1"."id", "clients_projects_1"."color"
FROM "public"."clients"
LEFT JOIN LATERAL (SELECT json_agg("clients_projects_1")::jsonb AS "clients_projects_1", COALESCE(json_agg("clients_projects_1"."id"
ORDER BY "clients_projects_1"."clients_projects_1_name_1" DESC), '[]')::jsonb AS "id", COALESCE(json_agg("clients_projects_1"."color"
ORDER BY "clients_projects_1"."clients_projects_1_name_1" DESC), '[]')::jsonb AS "color"
FROM (SELECT "projects_1"."id", "projects_1"."name" AS "clients_projects_1_name_1", "projects_details_2"."color"
FROM "public"."projects" AS "projects_1"
LEFT JOIN LATERAL (SELECT public.color_to_json("details_2"."color") AS "color"
FROM "public"."details" AS "details_2"
WHERE "details_2"."project_id" = "projects_1"."id") AS "projects_details_2" ON TRUE
WHERE "projects_1"."client_id" = "public"."clients"."id") AS "clients_projects_1") AS "clients_projects_1" ON TRUE) result;
