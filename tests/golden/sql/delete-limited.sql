-- DELETE /clients?id=gt.1
-- values [b'1'], parameters (0,)
WITH pgrst_source AS (DELETE
FROM "public"."clients"
WHERE "public"."clients"."id" > $1
RETURNING 1) SELECT NULL AS total, (CASE WHEN count(result) > 2 THEN ('toft:PGRST124:' || count(result))::int ELSE count(result) END)::text AS page, ''::text AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status, NULL AS location, NULL AS inserted
FROM (SELECT *
FROM pgrst_source) result;
