-- POST /members
-- values [], parameters (-1,)
WITH pgrst_source AS (INSERT INTO "public"."members"("person_id", "project_id") SELECT "pgrst_body"."person_id", "pgrst_body"."project_id"
FROM (SELECT $1::json AS json_data) pgrst_payload, LATERAL (SELECT "person_id", "project_id"
FROM json_to_record(pgrst_payload.json_data) AS _("person_id" integer, "project_id" integer)) pgrst_body
RETURNING "public"."members".*) SELECT NULL AS total, count(result)::text AS page, ''::text AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status, CASE WHEN count(result) = 1 THEN (SELECT json_agg(json_build_array(k.key, k.value))
FROM (SELECT row_to_json(s) AS row
FROM pgrst_source s LIMIT 1) r, json_each_text(r.row) k
WHERE k.key IN ('person_id', 'project_id'))::text END AS location, NULL AS inserted
FROM (SELECT *
FROM pgrst_source) result;
