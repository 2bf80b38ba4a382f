create schema private;

create type public.team_role as enum ('owner', 'member');

create table public.teams (
  id uuid primary key default gen_random_uuid(),
  name text not null check (char_length(name) between 1 and 80),
  slug text generated always as (lower(regexp_replace(name, '[^a-zA-Z0-9]+', '-', 'g'))) stored,
  created_at timestamptz not null default now()
);

create table public.team_members (
  team_id uuid not null references public.teams on delete cascade,
  user_id uuid not null references public.profiles on delete cascade,
  role public.team_role not null default 'member',
  primary key (team_id, user_id)
);

create index team_members_user_id_idx on public.team_members (user_id);

-- Policies of team_members may not ask team_members itself: that would never end.
create function private.is_member(team uuid, needed public.team_role default 'member')
returns boolean
language sql
stable
security definer set search_path = ''
as $$
  select exists (
    select 1 from public.team_members m
    where m.team_id = team
      and m.user_id = (select auth.uid())
      and (needed = 'member' or m.role = needed)
  );
$$;

grant usage on schema private to authenticated;
grant execute on function private.is_member to authenticated;

alter table public.teams enable row level security;
alter table public.team_members enable row level security;

create policy "Members see their team" on public.teams
  for select to authenticated using (private.is_member(id));
create policy "Owners rename their team" on public.teams
  for update to authenticated using (private.is_member(id, 'owner'));
create policy "Members see each other" on public.team_members
  for select to authenticated using (private.is_member(team_id));
create policy "Owners let people go" on public.team_members
  for delete to authenticated using (private.is_member(team_id, 'owner'));

create function public.create_team(name text)
returns public.teams
language plpgsql
security definer set search_path = ''
as $$
declare
  made public.teams;
begin
  if (select auth.uid()) is null then
    raise exception 'sign in first' using errcode = '28000';
  end if;
  insert into public.teams (name) values (create_team.name) returning * into made;
  insert into public.team_members (team_id, user_id, role) values (made.id, (select auth.uid()), 'owner');
  return made;
end;
$$;

revoke execute on function public.create_team from public, anon;
