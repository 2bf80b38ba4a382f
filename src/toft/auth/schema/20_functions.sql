-- Who asks: what policies call. Runs as supabase_auth_admin.
-- Plain SQL expressions, so that the planner can inline them; NULL outside of a request. A claim may come as a
-- setting of its own (older callers) or in the JSON of all claims, and empty text counts as absent.

create function auth.uid() returns uuid
language sql stable
return coalesce(
  nullif(current_setting('request.jwt.claim.sub', true), ''),
  nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'
)::uuid;

create function auth.role() returns text
language sql stable
return coalesce(
  nullif(current_setting('request.jwt.claim.role', true), ''),
  nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role'
);

create function auth.email() returns text
language sql stable
return coalesce(
  nullif(current_setting('request.jwt.claim.email', true), ''),
  nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'email'
);

create function auth.jwt() returns jsonb
language sql stable
return coalesce(
  nullif(current_setting('request.jwt.claim', true), ''),
  nullif(current_setting('request.jwt.claims', true), '')
)::jsonb;

comment on function auth.uid() is 'The signed-in user''s id, or NULL. auth.jwt() has the other claims.';
comment on function auth.role() is 'The role that the request''s token names. Prefer auth.jwt() ->> ''role''.';
comment on function auth.email() is 'The signed-in user''s e-mail. Prefer auth.jwt() ->> ''email''.';
