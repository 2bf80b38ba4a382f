-- GET /clients
-- values [], parameters ()
SELECT NULL::text AS total, count(result)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "public"."clients".*
FROM "public"."clients") result;
