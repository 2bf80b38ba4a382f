"""toftd: one small process that keeps leases and backends, and serves the control API on a Unix socket.

Start at `main.py`, then `compose.py` (what is connected to what), `loop.py` (observe, decide, act), `api.py`.
It survives kill -9: whatever it starts lives on and is adopted by the next one. Never: a tenant's SQL, a
tenant's files or anything else that a tenant can slow down, in its event loop.
"""
