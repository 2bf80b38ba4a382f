-- Toft's stand-in for pg_graphql: there is no GraphQL here, and every answer says so.

create function graphql.resolve(
  query text, variables jsonb default '{}', "operationName" text default null, extensions jsonb default null)
returns jsonb
language sql immutable
return '{"errors": [{"message": "pg_graphql is not available in this backend."}]}'::jsonb;
comment on function graphql.resolve(text, jsonb, text, jsonb) is 'Stand-in by Toft: GraphQL is not available.';

create function graphql.get_schema_version() returns integer
language sql stable
return 1;

grant execute on all functions in schema graphql to postgres, anon, authenticated, service_role;
