-- When a photo's row goes, its object is noted for removal.
create table public.orphans (
  object_path text primary key,
  noted_at timestamptz not null default now()
);
alter table public.orphans enable row level security;
grant select, delete on public.orphans to service_role;

create function public.note_orphan() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  insert into public.orphans (object_path) values (old.object_path) on conflict do nothing;
  return old;
end $$;

create trigger photos_note_orphan after delete on public.photos
  for each row execute function public.note_orphan();

drop policy "Photos of public albums are seen by all" on storage.objects;

create policy "Photos of public albums are seen by all"
  on storage.objects for select
  using (
    bucket_id = 'photos'
    and (
      (storage.foldername(name))[1] = (select auth.uid())::text
      or exists (select from public.albums a where a.is_public and a.id::text = (storage.foldername(name))[2])
    )
  );

comment on policy "Avatars are seen by all" on storage.objects is 'The bucket is public anyway';
