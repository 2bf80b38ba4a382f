-- Everyone who signs up gets a profile; the name comes from the sign-up form.
create table public.profiles (
  id uuid primary key references auth.users (id) on delete cascade,
  name text not null check (char_length(name) between 1 and 80),
  joined_at timestamptz not null default now()
);

alter table public.profiles enable row level security;

create policy "profiles are seen by everyone who is signed in" on public.profiles
  for select to authenticated using (true);

create policy "people rename themselves" on public.profiles
  for update to authenticated using (id = (select auth.uid())) with check (id = (select auth.uid()));

create function public.make_profile() returns trigger
  language plpgsql security definer set search_path = ''
as $$
begin
  insert into public.profiles (id, name)
  values (new.id, coalesce(new.raw_user_meta_data ->> 'name', split_part(new.email, '@', 1)));
  return new;
end;
$$;

create trigger on_sign_up
  after insert on auth.users
  for each row execute function public.make_profile();
