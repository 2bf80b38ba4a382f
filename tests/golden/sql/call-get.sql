-- GET /rpc/add?a=1&b=2
-- values [b'1', b'2'], parameters (0, 1)
WITH pgrst_source AS (SELECT pgrst_call.pgrst_scalar
FROM (SELECT "public"."add"("a" := $1::integer, "b" := $2::integer) pgrst_scalar) pgrst_call) SELECT NULL::text AS total, 1::text AS page, coalesce(json_agg(result.pgrst_scalar)->0, 'null') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "add".*
FROM "pgrst_source" AS "add") result;
