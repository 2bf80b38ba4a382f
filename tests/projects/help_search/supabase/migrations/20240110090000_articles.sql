create extension if not exists vector with schema extensions;
create extension if not exists unaccent with schema extensions;

create table public.articles (
  id bigint generated always as identity primary key,
  slug text not null unique,
  title text not null,
  body text not null,
  words tsvector generated always as (
    setweight(to_tsvector('english', title), 'A') || setweight(to_tsvector('english', body), 'B')
  ) stored
);

create index articles_words on public.articles using gin (words);

create table public.sections (
  id bigint generated always as identity primary key,
  article_id bigint not null references public.articles on delete cascade,
  position int not null,
  content text not null,
  embedding extensions.vector(3),
  unique (article_id, position)
);

create index sections_embedding on public.sections
  using hnsw (embedding extensions.vector_cosine_ops) with (m = 8, ef_construction = 32);

alter table public.articles enable row level security;
alter table public.sections enable row level security;

create policy "help is for all" on public.articles for select using (true);
create policy "sections are for all" on public.sections for select using (true);
