"""Pure: what the client asked. Text becomes values (`request.py`); nothing here knows the schema.

`grammar.py` are the parser's building blocks, `select.py`, `filters.py` and `query.py` the query string,
`headers.py`, `body.py` and `target.py` the rest. A failure is a `RestError` and nothing else.
"""
