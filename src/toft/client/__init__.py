"""The other side of the control API: how a process talks to the daemon, and starts it when there is none.

Nouns: `Daemon` (calls), `Stream` (an answer that goes on), `Hold` (the stream that keeps a lease), project.
Start at `backend.py`. All is on the CLI's quick path, cheap standard library only, but for the calls to a
backend's own port: `services.py`, `users.py`, `mailbox.py`.
Never: asyncio, the meaning of a project's files, the environment of this process (it comes in as a value).
"""
