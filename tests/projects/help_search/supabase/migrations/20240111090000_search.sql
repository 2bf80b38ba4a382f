create or replace function public.match_sections(
  query_embedding extensions.vector(3),
  match_threshold float default 0.5,
  match_count int default 5
)
returns table (id bigint, title text, content text, similarity float)
language sql
stable
set search_path = ''
as $$
  select s.id, a.title, s.content, 1 - (s.embedding operator(extensions.<=>) query_embedding) as similarity
  from public.sections s
  join public.articles a on a.id = s.article_id
  where s.embedding operator(extensions.<=>) query_embedding < 1 - match_threshold
  order by s.embedding operator(extensions.<=>) query_embedding
  limit least(match_count, 50);
$$;

create or replace function public.search_articles(question text)
returns setof public.articles
language sql
stable
as $$
  select * from public.articles
  where words @@ websearch_to_tsquery('english', extensions.unaccent(question))
  order by ts_rank(words, websearch_to_tsquery('english', extensions.unaccent(question))) desc;
$$;

create function public.embedding_key_is_set() returns boolean
language sql stable security definer set search_path = ''
return exists (select from vault.decrypted_secrets where name = 'embedding_api_key');

revoke execute on function public.embedding_key_is_set from public, anon, authenticated;
