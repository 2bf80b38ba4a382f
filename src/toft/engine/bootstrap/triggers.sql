-- Nobody but the superuser may use what is here, save what the Data API asks before every request.
revoke all on all functions in schema toft from public;
grant execute on function toft.schema_version(), toft.require_schema_version(text, text),
  toft.fold_schema_changes() to authenticator;

-- The event triggers last, so that a template's version is one row. ALWAYS: a tenant may set
-- session_replication_role to replica.

create event trigger toft_guard_ddl on ddl_command_end execute function toft.guard_ddl();
create event trigger toft_guard_drop on sql_drop execute function toft.guard_drop();
create event trigger toft_grant_extension on ddl_command_end when tag in ('CREATE EXTENSION')
  execute function toft.grant_extension();
create event trigger pgrst_ddl_watch on ddl_command_end execute function toft.note_ddl();
create event trigger pgrst_drop_watch on sql_drop execute function toft.note_drop();

alter event trigger toft_guard_ddl enable always;
alter event trigger toft_guard_drop enable always;
alter event trigger toft_grant_extension enable always;
alter event trigger pgrst_ddl_watch enable always;
alter event trigger pgrst_drop_watch enable always;
