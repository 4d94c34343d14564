"""The time and the memory that a method is said to have taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numba.core import event

from hylift.inference import Request
from hylift.racing import race
from hylift.racing.memory import MemoryMark
from racing.stubs import Stub, coin


@dataclass(slots=True)
class Clock:
    """A clock that goes on only when it is told to."""

    now: float = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of races and of Numba's events."""
    clock = Clock()
    monkeypatch.setattr("hylift.racing.run.time", clock)
    monkeypatch.setattr(event, "timer", clock.perf_counter)
    return clock


def test_short_runs_are_timed_twice_so_that_loading_is_not_counted(clock: Clock) -> None:
    calls: list[Request] = []

    def load_code(request: Request) -> None:
        calls.append(request)
        clock.now += 0.25 if len(calls) == 1 else 0.125

    found = race(coin(), [Stub(asked=load_code)])

    assert len(calls) == 2
    assert found["stub"].seconds == 0.125


def test_compilation_is_not_counted(clock: Clock) -> None:
    calls: list[Request] = []

    def compile_slowly(request: Request) -> None:
        calls.append(request)
        with event.trigger_event("numba:compile"):
            clock.now += 2.0
        clock.now += 1.0

    found = race(coin(), [Stub(asked=compile_slowly)])

    assert len(calls) == 1  # a long run is not repeated for it
    assert found["stub"].seconds == 1.0


def test_memory_is_the_growth_at_the_peak() -> None:
    size = 64_000_000
    mark = MemoryMark.here()
    if mark.resident is None:
        pytest.skip("this system does not tell")

    block = np.ones(size // 8)
    del block

    growth = mark.growth()
    assert growth is not None
    if mark.is_now:
        # The allocator may take a little more, and gives back what it held before.
        assert 0.8 * size < growth < 2 * size


def test_memory_is_that_of_the_run_that_took_most() -> None:
    if not MemoryMark.here().is_now:
        pytest.skip("this system does not forget a peak")
    size, held = 64_000_000, []

    def take_at_first(_: Request) -> None:
        if not held:
            held.append(np.ones(size // 8))

    found = race(coin(), [Stub(asked=take_at_first)])

    memory = found["stub"].memory
    assert memory is not None
    assert memory > 0.8 * size  # pages that were there before need not be taken
