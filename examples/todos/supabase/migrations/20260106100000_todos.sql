create table public.todos (
  id bigint generated always as identity primary key,
  project_id bigint not null references public.projects (id) on delete cascade,
  title text not null check (char_length(title) between 1 and 200),
  is_done boolean not null default false,
  priority smallint not null default 3 check (priority between 1 and 5),
  due date,
  created_by uuid not null default auth.uid() references public.profiles (id),
  unique (project_id, title)
);

create index on public.todos (created_by);

create function public.may_write(project bigint) returns boolean
  language sql stable security definer set search_path = ''
as $$
  select public.owns(project)
    or exists (
      select from public.members
      where project_id = project and profile_id = (select auth.uid()) and may_write
    );
$$;

alter table public.todos enable row level security;

create policy "todos are seen by those who take part" on public.todos
  for select to authenticated using (public.takes_part(project_id));
create policy "writers add todos" on public.todos
  for insert to authenticated with check (public.may_write(project_id) and created_by = (select auth.uid()));
create policy "writers change todos" on public.todos
  for update to authenticated using (public.may_write(project_id)) with check (public.may_write(project_id));
create policy "writers remove todos" on public.todos
  for delete to authenticated using (public.may_write(project_id));

-- How far a project is; the caller's policies apply.
create function public.progress(project bigint)
  returns table (total bigint, done bigint, next_due date)
  language sql stable set search_path = ''
as $$
  select count(*), count(*) filter (where is_done), min(due) filter (where not is_done)
  from public.todos
  where project_id = project;
$$;
