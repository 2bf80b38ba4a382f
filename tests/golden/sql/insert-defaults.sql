-- POST /details?columns=color,project_id
-- values [], parameters (-1,)
WITH pgrst_source AS (INSERT INTO "public"."details"("color", "project_id") SELECT "pgrst_body"."color", "pgrst_body"."project_id"
FROM (SELECT $1::jsonb AS json_data) pgrst_payload, LATERAL (SELECT jsonb_agg(jsonb_build_object() || elem) AS val
FROM jsonb_array_elements(pgrst_payload.json_data) elem) pgrst_json_defs, LATERAL (SELECT public.color_from_json("color") AS "color", "project_id"
FROM jsonb_to_recordset(pgrst_json_defs.val) AS _("color" json, "project_id" integer)) pgrst_body
RETURNING 1) SELECT NULL AS total, count(result)::text AS page, ''::text AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status, NULL AS location, NULL AS inserted
FROM (SELECT *
FROM pgrst_source) result;
