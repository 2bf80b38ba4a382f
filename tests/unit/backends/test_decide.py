"""The next act for a backend, as a table."""

from __future__ import annotations

import pytest

from tests.property.backends.strategies import make_backend
from toft.backends.backend import Attachment, Sighting, Wish
from toft.backends.decide import MOST_DEATHS, Act, decide_act, is_ready

NOTHING = Sighting()
RUNS = Sighting(is_running=True)
SERVES = Sighting(is_running=True, attachment=Attachment.AWAKE)
SLEEPS = Sighting(attachment=Attachment.ASLEEP)
CLONED = {"is_cloned": True}
PRIMED = {"is_cloned": True, "is_primed": True}


@pytest.mark.parametrize(
    ("wish", "record", "seen", "act"),
    [
        (Wish.CLONED, {}, NOTHING, Act.CLONE),
        (Wish.CLONED, CLONED, NOTHING, None),
        (Wish.STARTED, {}, NOTHING, Act.CLONE),
        (Wish.STARTED, CLONED, NOTHING, Act.START),
        (Wish.STARTED, CLONED, RUNS, Act.PRIME),
        (Wish.STARTED, PRIMED, RUNS, Act.ATTACH),
        (Wish.STARTED, PRIMED, SERVES, None),
        # its postmaster died: start it, whatever its worker believes
        (Wish.STARTED, PRIMED, Sighting(attachment=Attachment.AWAKE), Act.START),
        # adopted, or woken: tell the worker
        (Wish.STARTED, PRIMED, Sighting(is_running=True, attachment=Attachment.UNTOLD), Act.TELL_AWAKE),
        (Wish.STARTED, PRIMED, Sighting(is_running=True, attachment=Attachment.ASLEEP), Act.TELL_AWAKE),
        (Wish.STARTED, PRIMED, Sighting(recent_deaths=MOST_DEATHS), Act.BREAK),
        (Wish.STARTED, PRIMED, Sighting(recent_deaths=MOST_DEATHS - 1), Act.START),
        (Wish.ASLEEP, PRIMED, SERVES, Act.SLEEP),
        (Wish.ASLEEP, PRIMED, SLEEPS, None),
        (Wish.ASLEEP, PRIMED, Sighting(is_running=True, attachment=Attachment.ASLEEP), Act.SLEEP),
        (Wish.ASLEEP, PRIMED, NOTHING, Act.ATTACH),
        (Wish.GONE, {}, NOTHING, Act.DESTROY),
        (Wish.GONE, PRIMED, SERVES, Act.DESTROY),
        (Wish.STARTED, {**PRIMED, "failure": "it broke"}, SERVES, Act.REFUSE),
        (Wish.STARTED, {**PRIMED, "failure": "it broke"}, RUNS, Act.REFUSE),
        (Wish.STARTED, {**PRIMED, "failure": "it broke"}, Sighting(attachment=Attachment.REFUSING), None),
        (Wish.GONE, {**PRIMED, "failure": "it broke"}, NOTHING, Act.DESTROY),
    ],
)
def test_decide_act(wish: Wish, record: dict[str, object], seen: Sighting, act: Act | None) -> None:
    """What is wished and what is seen give the next act, or rest."""
    assert decide_act(make_backend(wish=wish, is_leased=bool(record.get("failure")), **record), seen) is act


@pytest.mark.parametrize(
    ("record", "seen", "ready"),
    [
        (PRIMED, SERVES, True),
        ({**PRIMED, "is_leased": True}, SERVES, False),
        ({**PRIMED, "failure": "it broke"}, Sighting(attachment=Attachment.REFUSING), False),
        (PRIMED, RUNS, False),
        ({**PRIMED, "wish": Wish.CLONED}, NOTHING, False),
    ],
)
def test_is_ready(record: dict[str, object], seen: Sighting, ready: bool) -> None:
    """Only what is complete and nobody's can be handed over."""
    assert is_ready(make_backend(**record), seen) is ready
