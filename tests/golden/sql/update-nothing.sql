-- PATCH /clients?id=eq.1
-- values [b'1'], parameters ()
WITH pgrst_source AS (SELECT "clients".*
FROM "public"."clients"
WHERE false) SELECT NULL AS total, count(result)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status, NULL AS location, NULL AS inserted
FROM (SELECT "clients".*
FROM "pgrst_source" AS "clients") result;
