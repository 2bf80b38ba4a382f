"""All SQL of Auth, one file per noun. Runs as `supabase_auth_admin`; table names are qualified.

Start at `users.py`. Never: decisions, tokens, HTTP. Enums are passed and read as
text, so that the driver need not ask the server about them.
"""
