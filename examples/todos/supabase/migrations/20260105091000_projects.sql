create table public.projects (
  id bigint generated always as identity primary key,
  name text not null check (char_length(name) between 1 and 120),
  owner_id uuid not null default auth.uid() references public.profiles (id) on delete cascade
);

create table public.members (
  project_id bigint not null references public.projects (id) on delete cascade,
  profile_id uuid not null references public.profiles (id) on delete cascade,
  may_write boolean not null default false,
  primary key (project_id, profile_id)
);

create index on public.projects (owner_id);
create index on public.members (profile_id);

-- Policies of one table look into the other: functions keep them from asking each other in circles.
create function public.owns(project bigint) returns boolean
  language sql stable security definer set search_path = ''
as $$
  select exists (select from public.projects where id = project and owner_id = (select auth.uid()));
$$;

create function public.takes_part(project bigint) returns boolean
  language sql stable security definer set search_path = ''
as $$
  select public.owns(project)
    or exists (select from public.members where project_id = project and profile_id = (select auth.uid()));
$$;

alter table public.projects enable row level security;
alter table public.members enable row level security;

create policy "projects are seen by those who take part" on public.projects
  for select to authenticated using (owner_id = (select auth.uid()) or public.takes_part(id));
create policy "people start projects of their own" on public.projects
  for insert to authenticated with check (owner_id = (select auth.uid()));
create policy "owners change their projects" on public.projects
  for update to authenticated using (owner_id = (select auth.uid()));
create policy "owners end their projects" on public.projects
  for delete to authenticated using (owner_id = (select auth.uid()));

create policy "members are seen by those who take part" on public.members
  for select to authenticated using (public.takes_part(project_id));
create policy "owners choose members" on public.members
  for all to authenticated using (public.owns(project_id)) with check (public.owns(project_id));
