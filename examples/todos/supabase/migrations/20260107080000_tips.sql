-- What visitors see before they sign in.
create table public.tips (
  id int primary key,
  body text not null
);

alter table public.tips enable row level security;

create policy "tips are for everyone" on public.tips for select to anon, authenticated using (true);
