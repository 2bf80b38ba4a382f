"""`toft config show`: every option, its value and its origin."""

from __future__ import annotations

from toft import settings
from toft.cli.argv import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context


def show(context: Context) -> int:
    """What counts here and now, and why."""
    loaded = context.settings
    rows = [
        {
            "name": option.name,
            "value": loaded.values[option.name],
            "origin": loaded.origins[option.name],
            "variable": option.env,
            "takes": option.takes,
            "prose": option.prose,
        }
        for option in settings.options()
    ]
    if context.show.is_json:
        context.show.data({"options": rows, "file": loaded.home + "/config.toml"})
        return 0
    for row in rows:
        value = "-" if row["value"] is None else row["value"]
        context.show.text(f"{row['name']} = {value}    ({row['origin']})\n")
        context.show.text(f"    {row['prose']} {row['variable']}={row['takes']}\n")
    context.show.note(f"options may also stand in {loaded.home}/config.toml")
    return 0


USAGE = {"show": (Usage("toft config show", "Show every option, its value and where it is from."), show)}
