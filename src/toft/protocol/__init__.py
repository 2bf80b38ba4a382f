"""What processes say to each other, as types: control API, worker channel, bundles, environment.

Nouns: lease messages (`lease.py`), `Bundle`, `BackendSpec` (`worker.py`), environment variables. Never: I/O.
`bundle.py` and `environment.py` are on the CLI's quick path: cheap standard library only.
"""
