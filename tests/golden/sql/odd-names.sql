-- GET /odd%20"table",%201?select="a \"b\"","select"&"a \"b\""=eq.1
-- values [b'1'], parameters (0,)
SELECT NULL::text AS total, count(result)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "public"."odd ""table"", 1"."a ""b""", "public"."odd ""table"", 1"."select"
FROM "public"."odd ""table"", 1"
WHERE "public"."odd ""table"", 1"."a ""b""" = $1) result;
