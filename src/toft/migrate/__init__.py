"""A project's files become a schema, by the transaction rules of the Supabase CLI.

Nouns: `Project` (what will run), `Piece` (one statement and where it stands), `Step` (a link of the chain
that names templates), `Applied`. Start at `project.py`, then `run.py`. Only what `run.py` leads to does I/O.
Never: reads a user's folder, decides which template to start from, keeps a connection.
"""
