"""HTTP at the edge: request and response values, the one server, streams and limits.

Nouns: Request, Response, Body. Start at `message.py`, then `server.py`. Never: routes, or anything about
the services behind a port.
"""
