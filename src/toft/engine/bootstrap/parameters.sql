-- Settings that only a superuser may change, opened to `postgres` one name at a time (there are no
-- wildcards). A name that a project's SQL uses and that is missing here is granted by the runner.

grant set on parameter
  session_replication_role, log_min_messages, log_lock_waits, track_io_timing,
  "auto_explain.log_min_duration", "auto_explain.log_analyze", "auto_explain.log_buffers",
  "auto_explain.log_format", "auto_explain.log_nested_statements", "auto_explain.log_timing",
  "auto_explain.log_triggers", "auto_explain.log_verbose", "auto_explain.sample_rate",
  "pgaudit.log", "pgaudit.log_catalog", "pgaudit.log_client", "pgaudit.log_level",
  "pgaudit.log_parameter", "pgaudit.log_relation", "pgaudit.role",
  "pg_net.batch_size", "pg_net.ttl", "plan_filter.statement_cost_limit",
  "app.settings.jwt_secret", "app.settings.jwt_exp",
  "pgrst.client_error_verbosity", "pgrst.db_aggregates_enabled", "pgrst.db_anon_role",
  "pgrst.db_channel", "pgrst.db_channel_enabled", "pgrst.db_extra_search_path",
  "pgrst.db_hoisted_tx_settings", "pgrst.db_max_rows", "pgrst.db_plan_enabled",
  "pgrst.db_pool", "pgrst.db_pool_acquisition_timeout", "pgrst.db_pool_max_idletime",
  "pgrst.db_pool_max_lifetime", "pgrst.db_pre_config", "pgrst.db_pre_request",
  "pgrst.db_prepared_statements", "pgrst.db_root_spec", "pgrst.db_schemas",
  "pgrst.db_timezone_enabled", "pgrst.db_tx_end", "pgrst.db_use_legacy_gucs",
  "pgrst.jwt_aud", "pgrst.jwt_cache_max_entries", "pgrst.jwt_cache_max_lifetime",
  "pgrst.jwt_role_claim_key", "pgrst.jwt_secret", "pgrst.jwt_secret_is_base64",
  "pgrst.log_level", "pgrst.log_query", "pgrst.openapi_mode",
  "pgrst.openapi_security_active", "pgrst.openapi_server_proxy_uri", "pgrst.raw_media_types",
  "pgrst.server_cors_allowed_origins", "pgrst.server_timing_enabled", "pgrst.server_trace_header"
to postgres;
