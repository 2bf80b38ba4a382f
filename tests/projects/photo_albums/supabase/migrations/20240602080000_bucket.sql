insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types)
values ('photos', 'photos', false, 10485760, array['image/jpeg', 'image/png', 'image/webp'])
on conflict (id) do update
  set public = excluded.public, file_size_limit = excluded.file_size_limit;

-- Objects lie under <user>/<album>/<file>.
create policy "People put photos into their own folder"
  on storage.objects for insert to authenticated
  with check (bucket_id = 'photos' and (storage.foldername(name))[1] = (select auth.uid())::text);

create policy "People replace their own photos"
  on storage.objects for update to authenticated
  using (bucket_id = 'photos' and (storage.foldername(name))[1] = (select auth.uid())::text);

create policy "People remove their own photos"
  on storage.objects for delete to authenticated
  using (bucket_id = 'photos' and owner_id = (select auth.uid())::text);

create policy "Photos of public albums are seen by all"
  on storage.objects for select
  using (
    bucket_id = 'photos'
    and (
      (storage.foldername(name))[1] = (select auth.uid())::text
      or exists (
        select from public.albums a
        where a.is_public and a.id::text = (storage.foldername(name))[2]
      )
    )
    and storage.extension(name) in ('jpg', 'jpeg', 'png', 'webp')
  );

create policy "Avatars are seen by all" on storage.objects for select using (bucket_id = 'avatars');
