insert into public.teams (id, name) values ('cccccccc-cccc-4ccc-8ccc-cccccccccccc', 'Bridge & Tunnel');

insert into public.team_members (team_id, user_id, role) values
  ('cccccccc-cccc-4ccc-8ccc-cccccccccccc', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'owner');
