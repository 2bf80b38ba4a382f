-- Puts the teams of a person into the access token.
create function public.custom_access_token(event jsonb)
returns jsonb
language plpgsql
stable
as $$
declare
  teams jsonb;
begin
  select coalesce(jsonb_object_agg(team_id, role), '{}') into teams
  from public.team_members
  where user_id = (event ->> 'user_id')::uuid;
  return jsonb_set(event, '{claims,app_metadata,teams}', teams);
end;
$$;

grant usage on schema public to supabase_auth_admin;
grant execute on function public.custom_access_token to supabase_auth_admin;
revoke execute on function public.custom_access_token from authenticated, anon, public;

grant select on public.team_members to supabase_auth_admin;
create policy "Auth reads memberships" on public.team_members
  as permissive for select to supabase_auth_admin using (true);
