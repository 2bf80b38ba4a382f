-- GET /projects?select=id,clients!inner(name),people(name),details(),lead(name)&people.name=eq.x&people.limit=3&order=clients(name)&details=not.is.null
-- values [b'x', b'3'], parameters (0, 1)
SELECT NULL::text AS total, count(result)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "public"."projects"."id", row_to_json("projects_clients_1".*)::jsonb AS "clients", COALESCE("projects_people_1"."projects_people_1", '[]') AS "people", row_to_json("projects_lead_1".*)::jsonb AS "lead"
FROM "public"."projects"
INNER JOIN LATERAL (SELECT "clients_1"."name"
FROM "public"."clients" AS "clients_1"
WHERE "clients_1"."id" = "public"."projects"."client_id") AS "projects_clients_1" ON TRUE
LEFT JOIN LATERAL (SELECT json_agg("projects_people_1")::jsonb AS "projects_people_1"
FROM (SELECT "public"."people"."name"
FROM "public"."people", "public"."members"
WHERE "public"."people"."name" = $1 AND "public"."people"."id" = "public"."members"."person_id" AND "public"."members"."project_id" = "public"."projects"."id" LIMIT $2) AS "projects_people_1") AS "projects_people_1" ON TRUE
LEFT JOIN LATERAL (SELECT "details_1".*
FROM "public"."details" AS "details_1"
WHERE "details_1"."project_id" = "public"."projects"."id") AS "projects_details_1" ON TRUE
LEFT JOIN LATERAL (SELECT "people_1"."name"
FROM "public"."lead"("projects"::"public"."projects") AS "people_1") AS "projects_lead_1" ON TRUE
WHERE "projects_details_1" IS DISTINCT
FROM NULL
ORDER BY "projects_clients_1"."name") result;
