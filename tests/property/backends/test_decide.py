"""From any reachable world the loop comes to rest in the wished world.

The machine plays a backend's life: acts that succeed or are cut off halfway (the daemon was killed), a
postmaster or a worker that dies, connections that wake a sleeper, a lease that begins and ends, a new daemon
that knows only the record. After every event the loop is run to its rest, and the world must be as wished.
"""

from __future__ import annotations

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.property.backends.strategies import make_backend
from toft.backends.backend import Attachment, Backend, Sighting, Wish
from toft.backends.decide import MOST_DEATHS, Act, decide_act, is_ready

#: No wish is further away than this many acts.
MOST_ACTS = 8


class Life(RuleBasedStateMachine):
    """The record, what was seen, and what is really so."""

    def __init__(self) -> None:
        super().__init__()
        self.backend: Backend | None = make_backend(wish=Wish.CLONED)
        self.seen = Sighting()
        self.is_running = False
        self.worker = Attachment.NONE

    # The world.

    def perform(self, act: Act) -> None:
        backend = self.backend
        assert backend is not None
        match act:
            case Act.CLONE:
                assert not backend.is_cloned
                self.change(is_cloned=True)
            case Act.START:
                assert backend.is_cloned
                assert not self.is_running, "two postmasters on one directory"
                self.is_running = True
                self.see(is_running=True)
            case Act.PRIME:
                assert self.is_running
                self.change(is_primed=True)
            case Act.ATTACH:
                told = Attachment.AWAKE if backend.wish is Wish.STARTED else Attachment.ASLEEP
                self.worker = told
                self.see(attachment=told)
            case Act.TELL_AWAKE:
                assert self.is_running
                self.worker = Attachment.AWAKE
                self.see(attachment=Attachment.AWAKE)
            case Act.SLEEP:
                self.worker = Attachment.ASLEEP
                self.is_running = False
                self.see(is_running=False, attachment=Attachment.ASLEEP)
            case Act.BREAK:
                self.change(failure="it ended again and again")
            case Act.REFUSE:
                if self.worker is not Attachment.NONE:
                    self.worker = Attachment.REFUSING
                    self.see(attachment=Attachment.REFUSING)
                self.is_running = False
                self.see(is_running=False)
            case Act.DESTROY:
                self.worker = Attachment.NONE
                self.is_running = False
                self.backend = None

    def change(self, **fields: object) -> None:
        assert self.backend is not None
        self.backend = msgspec.structs.replace(self.backend, **fields)

    def see(self, **fields: object) -> None:
        self.seen = msgspec.structs.replace(self.seen, **fields)

    # What happens.

    def next_act(self) -> Act | None:
        return None if self.backend is None else decide_act(self.backend, self.seen)

    @rule()
    def run_to_rest(self) -> None:
        for _ in range(MOST_ACTS):
            act = self.next_act()
            if act is None:
                break
            self.perform(act)
        assert self.next_act() is None, "the loop does not come to rest"
        self.check_rest()

    @precondition(lambda self: self.next_act() is not None)
    @rule()
    def one_act(self) -> None:
        act = self.next_act()
        assert act is not None
        self.perform(act)

    @precondition(lambda self: self.next_act() is Act.START)
    @rule()
    def start_fails(self) -> None:
        self.see(recent_deaths=min(MOST_DEATHS, self.seen.recent_deaths + 1))
        assert self.backend is not None
        if not self.backend.is_leased:
            self.change(wish=Wish.GONE)

    @precondition(lambda self: self.backend is not None and self.backend.is_cloned)
    @rule()
    def daemon_is_killed(self) -> None:
        """The next one knows the record, sees which process lives, and hears what is attached."""
        attachment = Attachment.NONE if self.worker is Attachment.NONE else Attachment.UNTOLD
        self.seen = Sighting(is_running=self.is_running, attachment=attachment)

    @precondition(lambda self: self.is_running)
    @rule()
    def postmaster_dies(self) -> None:
        self.is_running = False
        self.see(is_running=False, recent_deaths=min(MOST_DEATHS, self.seen.recent_deaths + 1))
        assert self.backend is not None
        if not self.backend.is_leased:
            self.change(wish=Wish.GONE)

    @precondition(lambda self: self.worker is not Attachment.NONE)
    @rule()
    def worker_dies(self) -> None:
        self.worker = Attachment.NONE
        self.see(attachment=Attachment.NONE)

    @rule()
    def time_passes(self) -> None:
        self.see(recent_deaths=0)

    @precondition(lambda self: self.backend is not None and self.backend.wish is Wish.CLONED)
    @rule()
    def promoted(self) -> None:
        self.change(wish=Wish.STARTED)

    @precondition(lambda self: self.backend is not None and is_ready(self.backend, self.seen))
    @rule()
    def leased(self) -> None:
        self.change(is_leased=True)

    @precondition(
        lambda self: self.backend is not None and self.backend.is_leased and self.backend.wish is Wish.STARTED
    )
    @rule()
    def falls_idle(self) -> None:
        self.change(wish=Wish.ASLEEP)

    @precondition(lambda self: self.backend is not None and self.backend.failure is None)
    @rule()
    def somebody_connects(self) -> None:
        assert self.backend is not None
        if self.worker is Attachment.NONE or (self.worker is Attachment.AWAKE and self.is_running):
            return
        if self.backend.wish is Wish.ASLEEP:
            self.change(wish=Wish.STARTED)
        elif self.backend.wish is Wish.STARTED:
            self.see(attachment=Attachment.UNTOLD)

    @precondition(lambda self: self.backend is not None and self.backend.wish is not Wish.GONE)
    @rule(likely=st.integers(0, 3))
    def wished_gone(self, likely: int) -> None:
        if likely == 0:
            self.change(wish=Wish.GONE)

    @precondition(lambda self: self.backend is None)
    @rule(wish=st.sampled_from([Wish.CLONED, Wish.STARTED]))
    def another(self, wish: Wish) -> None:
        self.backend = make_backend(wish=wish)
        self.seen = Sighting()

    # What must hold.

    def check_rest(self) -> None:
        backend = self.backend
        if backend is None:
            assert not self.is_running
            assert self.worker is Attachment.NONE
            return
        assert backend.wish is not Wish.GONE
        if backend.failure is not None:
            assert not self.is_running
            assert self.worker in (Attachment.NONE, Attachment.REFUSING)
        elif backend.wish is Wish.STARTED:
            assert (self.is_running, backend.is_primed) == (True, True)
            assert self.worker is Attachment.AWAKE
        elif backend.wish is Wish.ASLEEP:
            assert not self.is_running
            assert self.worker is Attachment.ASLEEP
        else:
            assert backend.is_cloned
            assert not self.is_running

    @invariant()
    def nothing_is_served_before_it_is_primed(self) -> None:
        if self.worker is Attachment.AWAKE:
            assert self.backend is not None
            assert self.backend.is_primed

    @invariant()
    def ready_is_complete(self) -> None:
        if self.backend is not None and is_ready(self.backend, self.seen):
            assert self.backend.is_cloned
            assert self.backend.is_primed
            assert not self.backend.is_leased


Life.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestLife = Life.TestCase
