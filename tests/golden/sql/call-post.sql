-- POST /rpc/add
-- values [], parameters (-1,)
WITH pgrst_source AS (SELECT pgrst_call.pgrst_scalar
FROM (SELECT $1::json AS json_data) pgrst_payload, LATERAL (SELECT "a"
FROM json_to_record(pgrst_payload.json_data) AS _("a" integer) LIMIT 1) pgrst_body, LATERAL (SELECT "public"."add"("a" := "pgrst_body"."a") pgrst_scalar) pgrst_call) SELECT NULL::text AS total, 1::text AS page, coalesce(json_agg(result.pgrst_scalar)->0, 'null') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "add".*
FROM "pgrst_source" AS "add") result;
