"""Pure: what the request means in this schema.

`read.py` makes the tree of read nodes (with `embed.py` for relationships), `mutate.py` and `call.py` what
precedes it, `negotiate.py` the media type; `nodes.py` are the values, `suggest.py` the "perhaps you meant".
A plan holds no client value: only places where one goes, so that it serves every request of its shape.
"""
