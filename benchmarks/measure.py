"""Seconds and memory of a piece of work."""

import resource
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """What the work returns, and the seconds it took."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds."""
    return min(timed(work)[1] for _ in range(repeats))


def peak_gigabytes() -> float:
    """The most memory this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
