-- GET /clients?limit=1
-- values [b'1'], parameters (0,)
WITH pgrst_source AS (SELECT "public"."clients".*
FROM "public"."clients" LIMIT $1) SELECT NULL::text AS total, count(result)::text AS page, (SELECT coalesce(string_agg(k.name, ','), '')
FROM (SELECT json_object_keys(r.row) AS name
FROM (SELECT row_to_json(s) AS row
FROM pgrst_source s LIMIT 1) r) k) || E'\n' || coalesce(string_agg(substring(result::text, 2, length(result::text) - 2), E'\n'), '') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT *
FROM pgrst_source) result;
