create extension if not exists citext with schema extensions;

create table public.invitations (
  id bigint generated always as identity primary key,
  team_id uuid not null references public.teams on delete cascade,
  email extensions.citext not null,
  token text not null unique default encode(extensions.gen_random_bytes(24), 'hex'),
  invited_by uuid default auth.uid() references public.profiles on delete set null,
  expires_at timestamptz not null default now() + interval '7 days',
  accepted_at timestamptz
);

create unique index one_open_invitation on public.invitations (team_id, email) where accepted_at is null;

alter table public.invitations enable row level security;

create policy "Owners see invitations" on public.invitations
  for select to authenticated using (private.is_member(team_id, 'owner'));
create policy "Owners invite" on public.invitations
  for insert to authenticated with check (private.is_member(team_id, 'owner'));

create function public.accept_invitation(invitation_token text)
returns uuid
language plpgsql
security definer set search_path = ''
as $$
declare
  invitation public.invitations;
begin
  select * into invitation from public.invitations
  where token = invitation_token and accepted_at is null and expires_at > now()
  for update;
  if not found then
    raise exception 'this invitation is not valid' using errcode = 'P0002', hint = 'ask for a new one';
  end if;
  insert into public.team_members (team_id, user_id)
  values (invitation.team_id, (select auth.uid()))
  on conflict do nothing;
  update public.invitations set accepted_at = now() where id = invitation.id;
  return invitation.team_id;
end;
$$;
