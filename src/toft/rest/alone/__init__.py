"""The Data API by itself, over any Postgres from 13 on: what `toft data-api` runs.

`settings.py` reads upstream's names, `bearer.py` judges tokens, `api.py` is the running thing, `admin.py` its
second port, `serve.py` the process.
"""
