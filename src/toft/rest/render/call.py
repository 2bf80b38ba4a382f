"""Pure: a function call as rows."""

from __future__ import annotations

from typing import Final

from toft.rest.plan.nodes import CallPlan
from toft.rest.render.fragment import Parameters, column, ident, qualified
from toft.rest.render.payload import BODY, PayloadColumn, payload_rows
from toft.rest.request import Operand
from toft.rest.schema.model import Name, Parameter

_CALL: Final = Name("", "pgrst_call")
_BODY: Final = Name("", BODY)
#: the column of a result that is no row, as error texts show it
SCALAR: Final = "pgrst_scalar"


def call(plan: CallPlan, parameters: Parameters) -> str:
    """The SELECT that calls the function."""
    routine = plan.routine
    is_scalar = not routine.is_composite
    rows = ""
    if plan.takes_body:
        kind = plan.parameters[0].type
        place = parameters.body(as_bytea=kind == "bytea")
        arguments = f"{place}::{kind}"
    elif plan.arguments is not None:
        given = plan.arguments
        arguments = ", ".join(_direct(each, given.get(each.name), parameters) for each in plan.parameters)
    elif not plan.parameters:
        arguments = ""
    else:
        columns = [PayloadColumn(each.name, each.record_type) for each in plan.parameters]
        rows = payload_rows(columns, parameters, is_object=plan.is_object, first_only=True) + ", LATERAL "
        arguments = ", ".join(f"{_target(each)} := {column(_BODY, each.name)}" for each in plan.parameters)
    called = f"{qualified(Name(routine.schema, routine.name))}({arguments})"
    if is_scalar:
        return f"SELECT pgrst_call.{SCALAR} FROM {rows}(SELECT {called} {SCALAR}) pgrst_call"
    return f"SELECT {_returned(plan)} FROM {rows}{called} pgrst_call"


def _target(parameter: Parameter) -> str:
    return ("VARIADIC " if parameter.is_variadic else "") + ident(parameter.name)


def _direct(parameter: Parameter, operands: tuple[Operand, ...] | None, parameters: Parameters) -> str:
    """An argument as a parameter of its own type, so that the function can be inlined and indexes used."""
    if not operands:
        value = "NULL"
    elif parameter.is_variadic:
        value = f"ARRAY[{', '.join(parameters.operand(operand) for operand in operands)}]"
    else:
        value = parameters.operand(operands[-1])
    return f"{_target(parameter)} := {value}::{parameter.record_type}"


def _returned(plan: CallPlan) -> str:
    return ", ".join(column(_CALL, name) for name in plan.returning) or "*"
