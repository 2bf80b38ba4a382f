"""The Data API: PostgREST's contract over one Postgres database.

A request walks once through the rooms: `parse` (bytes → RestRequest), `plan` (against the schema cache),
`render` (one SQL statement), `execute` (one round trip), `respond`. Nouns: request, shape, plan, statement,
schema cache. Start reading at `service.py`. `explain/` says why something was refused, `alone/` serves
without the rest of Toft.
It never builds JSON from rows in Python, never puts a client's value into SQL text, never asks the database
before the plan is made.
"""
