"""`python -m torture.worker`: runs cases by their addresses, a line of input and of output each."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import warnings

from hylift.errors import HyliftWarning
from torture.case import Address, shown

MEMORY = 8 << 30
"""Bytes of address space; a case that needs more fails with a `MemoryError`."""


def answered(line: str) -> dict[str, object]:
    """The reply to one line: an address, or '?' and an address for its description."""
    asked = line.strip()
    case = Address.parse(asked.removeprefix("?")).case()
    if case is None:
        return {"missing": True}
    if asked.startswith("?"):
        return {"case": str(case)}
    if "numba" in sys.modules:
        sys.modules["numba"].set_num_threads(1)
    problem = shown(case)
    return {} if problem is None else problem._asdict()


def main() -> None:
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", RuntimeWarning)
    warnings.simplefilter("ignore", HyliftWarning)
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a case prints is no reply
    for line in sys.stdin:
        print(json.dumps(answered(line)), file=replies, flush=True)


if __name__ == "__main__":
    main()
