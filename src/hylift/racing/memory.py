"""The memory that a piece of work needs."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
RESET_PEAK = "5"
"""Makes Linux reset the peak: see proc(5)."""


@dataclass(frozen=True, slots=True)
class MemoryMark:
    """The resident memory of this process at the start of some work."""

    resident: int | None
    """In bytes; None where the system does not report it."""
    is_now: bool
    """True for the current size, False for the largest so far."""

    @classmethod
    def here(cls) -> Self:
        _give_back()
        if _forget_peak():
            return cls(_status("VmRSS"), True)
        return cls(_largest_so_far(), False)

    def growth(self) -> int | None:
        """Bytes by which the peak since then is above the mark.

        Where the system cannot forget a peak, growth below an earlier one is not seen.
        """
        peak = _status("VmHWM") if self.is_now else _largest_so_far()
        if peak is None or self.resident is None:
            return None
        return max(peak - self.resident, 0)


def _give_back() -> None:
    """Let the C library return freed memory to the system, where it can.

    Work that takes it again would seem to need no memory.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # another C library than glibc
        return


def _forget_peak() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        CLEAR.write_text(RESET_PEAK)
    except OSError:  # some containers forbid it
        return False
    return _status("VmRSS") is not None


def _status(field: str) -> int | None:
    """A field of the process's status, in bytes: `VmHWM:    123456 kB`."""
    for line in STATUS.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    return None


def _largest_so_far() -> int | None:
    if os.name != "posix":
        return None
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(largest) if sys.platform == "darwin" else int(largest) * 1024
