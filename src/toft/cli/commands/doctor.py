"""`toft doctor`: what this machine has, what is missing, and the one command that mends it.

Looks for itself and needs no daemon, so that it can also say why there is none.
"""

from __future__ import annotations

from pathlib import Path

from toft.cli.argv import Usage
from toft.client import launch
from toft.engine.binaries import survey
from toft.errors.daemon import DaemonNotRunning
from toft.errors.engine import NoEngine
from toft.host import probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context
    from toft.engine.binaries import Survey

USAGE = Usage(
    "toft doctor",
    "Say what this machine has, what is missing, and how to mend it. Exit status 1 when no\n"
    "backend can run here.",
)


def main(context: Context) -> int:
    """All findings; the status tells whether backends can run at all."""
    launch.prepare(context.settings)
    home = Path(context.settings.home)
    bindir = context.settings.pg_bindir
    found = survey(home, Path(bindir) if bindir else None)
    findings = probe.findings(home)
    confinement = context.settings.confine
    method = probe.choose_method() if confinement == "auto" else confinement
    if context.show.is_json:
        context.show.data(
            {
                "engines": [_engine_card(found, index) for index in range(len(found.engines))],
                "broken": [fault.to_json() for fault in found.broken],
                "findings": [
                    {"name": one.name, "found": one.is_there, "detail": one.detail, "mend": one.mend}
                    for one in findings
                ],
                "confinement": method,
                "home": str(home),
                "daemon": _daemon(context),
            }
        )
        return 0 if found.engines else 1
    _print_engines(context, found)
    for one in findings:
        _print(context, one.is_there, one.name, one.detail, one.mend or "")
    _print(context, True, "confinement", f"backends run by: {method}")
    daemon = _daemon(context)
    _print(context, True, "daemon", f"{daemon}, home {home}")
    return 0 if found.engines else 1


def _engine_card(found: Survey, index: int) -> dict[str, object]:
    engine = found.engines[index]
    return {
        "id": engine.id,
        "major": engine.major,
        "version": engine.version,
        "source": engine.source,
        "bin_dir": str(engine.bin_dir),
        "extensions": list(engine.extensions),
        "notes": list(engine.notes),
    }


def _print_engines(context: Context, found: Survey) -> None:
    for engine in found.engines:
        _print(context, True, f"Postgres {engine.version}", f"{engine.source}, {engine.bin_dir}")
        context.show.text(f"      extensions: {_wrapped(engine.extensions)}\n")
        for note in engine.notes:
            context.show.text(f"      note: {note}\n")
    for fault in found.broken:
        _print(context, False, "Postgres", str(fault), fault.hint)
    if not found.engines and not found.broken:
        missing = NoEngine()
        _print(context, False, "Postgres", str(missing), missing.hint)


def _wrapped(words: tuple[str, ...]) -> str:
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > 76:
            lines.append("")
        lines[-1] += word + " "
    return "\n        ".join(line.rstrip() for line in lines)


def _print(context: Context, is_found: bool, name: str, detail: str, mend: str = "") -> None:
    context.show.text(f"{'ok' if is_found else '--':4}{name:18}{detail}\n")
    if mend and not is_found:
        context.show.text(f"      mend: {mend}\n")


def _daemon(context: Context) -> str:
    try:
        greeting = context.daemon(may_start=False).call("GET", "/v1/hello")
    except DaemonNotRunning:
        return "not running"
    return f"running, version {greeting['version']}, process {greeting['pid']}"
