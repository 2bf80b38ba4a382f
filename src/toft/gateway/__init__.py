"""Gateway workers: the processes that own the ports of backends and serve what stands behind them.

Nouns: worker, served backend, upstream (its postmaster, awake or asleep), route, splice (the SQL port). Start
at `attach.py`: which backends live here; then follow a request: `served.py`, `route.py`, `caller.py`,
`services.py`. `worker.py` is the process. Never: starting or stopping postmasters (it asks the daemon).
"""
