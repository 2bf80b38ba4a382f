-- GET /projects?select=id,name::text,data->a->>0&id=gt.1&name=not.like.x*&id=in.(1,2)&client_id=is.null&or=(name.eq.a,not.and(id.lt.3,name.match(any).{a,b}))&order=name.desc.nullslast,id&limit=5&offset=2
-- values [b'1', b'x%', b'{"1","2"}', b'a', b'3', b'{a,b}', b'5', b'2'], parameters (0, 1, 2, 3, 4, 5, 6, 7)
SELECT NULL::text AS total, count(result)::text AS page, coalesce(json_agg(result), '[]') AS body, nullif(current_setting('response.headers', true), '') AS headers, nullif(current_setting('response.status', true), '') AS status
FROM (SELECT "public"."projects"."id", CAST("public"."projects"."name" AS "text"), "public"."projects"."data"->'a'->>('+0'::int) AS "a"
FROM "public"."projects"
WHERE "public"."projects"."id" > $1 AND NOT "public"."projects"."name" LIKE $2 AND "public"."projects"."id" = ANY ($3) AND "public"."projects"."client_id" IS NULL AND ("public"."projects"."name" = $4 OR NOT ("public"."projects"."id" < $5 AND "public"."projects"."name" ~ ANY($6)))
ORDER BY "public"."projects"."name" DESC NULLS LAST, "public"."projects"."id" LIMIT $7 OFFSET $8) result;
