-- PATCH /clients?id=eq.1&or=(name.eq.a,name.is.null)
-- values [b'1', b'a'], parameters (-1, 0, 1)
WITH pgrst_source AS (UPDATE "public"."clients" SET "name" = "pgrst_body"."name"
FROM (SELECT $1::json AS json_data) pgrst_payload, LATERAL (SELECT "name"
FROM json_to_record(pgrst_payload.json_data) AS _("name" text)) pgrst_body
WHERE "public"."clients"."id" = $2 AND ("public"."clients"."name" = $3 OR "public"."clients"."name" IS NULL)
RETURNING 1) SELECT NULL AS total, count(result)::text AS page, ''::text AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status, NULL AS location, NULL AS inserted
FROM (SELECT *
FROM pgrst_source) result;
