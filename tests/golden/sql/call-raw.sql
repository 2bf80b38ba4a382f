-- POST /rpc/raw
-- values [], parameters (-1,)
WITH pgrst_source AS (SELECT pgrst_call.pgrst_scalar
FROM (SELECT "public"."raw"($1::json) pgrst_scalar) pgrst_call) SELECT NULL::text AS total, 1::text AS page, coalesce(json_agg(result.pgrst_scalar)->0, 'null') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "raw".*
FROM "pgrst_source" AS "raw") result;
