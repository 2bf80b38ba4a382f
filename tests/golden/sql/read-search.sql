-- GET /details?text=fts(english).cat&color=eq.red
-- values [b'cat', b'red'], parameters (0, 1)
SELECT NULL::text AS total, count(result)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "public"."details"."project_id", "public"."details"."text", public.color_to_json("public"."details"."color") AS "color"
FROM "public"."details"
WHERE "public"."details"."text" @@ to_tsquery('english', $1) AND "public"."details"."color" = public.color_from_text($2)) result;
