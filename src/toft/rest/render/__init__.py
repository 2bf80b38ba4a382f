"""Pure: a plan becomes one parameterised SQL statement.

`fragment.py` is SQL text with its parameters; `read.py`, `mutate.py`, `call.py`, `body.py` the parts of a
statement, `settings.py` the one that goes before it. Every identifier is quoted and every client value is a
parameter.
"""
