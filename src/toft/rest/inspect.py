"""Pure: what OPTIONS tells about a relation or a function: from the schema, not from anyone's rights."""

from __future__ import annotations

from toft.rest.schema.model import Routine, Table, Volatility


def allow_relation(table: Table) -> str:
    """The methods that can be used on a relation."""
    methods = ["OPTIONS", "GET", "HEAD"]
    if table.is_insertable:
        methods.append("POST")
        if table.is_updatable and table.primary_key:
            methods.append("PUT")
    if table.is_updatable:
        methods.append("PATCH")
    if table.is_deletable:
        methods.append("DELETE")
    return ",".join(methods)


def allow_routine(routine: Routine) -> str:
    """The methods that can be used on a function."""
    return "OPTIONS,POST" if routine.volatility is Volatility.VOLATILE else "OPTIONS,GET,HEAD,POST"
