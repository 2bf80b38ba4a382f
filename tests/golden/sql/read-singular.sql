-- GET /clients?id=eq.1
-- values [b'1'], parameters (0,)
SELECT NULL::text AS total, count(result)::text AS page, coalesce(json_agg(result)->0, 'null') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "public"."clients".*
FROM "public"."clients"
WHERE "public"."clients"."id" = $1) result;
