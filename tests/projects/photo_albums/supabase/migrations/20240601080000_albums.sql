-- New tables are not exposed in this project (config.toml): each says who may use it.
create table public.albums (
  id uuid primary key default gen_random_uuid(),
  owner uuid not null default auth.uid() references auth.users on delete cascade,
  title text not null,
  is_public boolean not null default false,
  created_at timestamptz not null default now()
);

create table public.photos (
  id uuid primary key default gen_random_uuid(),
  album_id uuid not null references public.albums on delete cascade,
  object_path text not null unique,
  caption text,
  position integer not null default 0,
  taken_at timestamptz
);

alter table public.albums enable row level security;
alter table public.photos enable row level security;

grant select on public.albums, public.photos to anon;
grant select, insert, update, delete on public.albums, public.photos to authenticated;
grant all on public.albums, public.photos to service_role;

create policy albums_read on public.albums for select using (is_public or owner = (select auth.uid()));
create policy albums_write on public.albums for all to authenticated
  using (owner = (select auth.uid())) with check (owner = (select auth.uid()));

create policy photos_read on public.photos for select
  using (exists (select from public.albums a where a.id = album_id));
create policy photos_write on public.photos for all to authenticated
  using (exists (select from public.albums a where a.id = album_id and a.owner = (select auth.uid())))
  with check (exists (select from public.albums a where a.id = album_id and a.owner = (select auth.uid())));
