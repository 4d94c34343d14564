"""`python -m torture [NAME …] [--seconds S]`: targets, or addresses of cases to repeat."""

from __future__ import annotations

import argparse
import os
import sys
import time

from torture.campaign import Campaign, replayed
from torture.case import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m torture",
        description="Deliberate breaking, for an hour or as long as you say; the exit code is 1 if "
        "something broke. A finding is repeated with its address, such as answers/17@0.3.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=3600.0, help="default: 3600")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="default: all cores")
    parser.add_argument("--seed", type=int, help="the first seed of each target; default: by date")
    parser.add_argument("--cases", type=int, help="most cases of each target")
    options = parser.parse_args()
    addresses = [name for name in options.names if "/" in name]
    unknown = [name for name in options.names if name not in (*TARGETS, *addresses)]
    if unknown:
        parser.error(f"no target '{unknown[0]}'; there are {', '.join(TARGETS)}")
    if addresses:
        failed = 0
        for described, problem in replayed(addresses):
            print(described, problem or "no problem", sep="\n")
            failed += problem is not None
        return min(failed, 1)
    seed = int(time.strftime("%Y%m%d")) * 10**6 if options.seed is None else options.seed
    print(f"torture: seeds from {seed}, {options.seconds:g} s, {options.workers} workers")
    targets = tuple(options.names) or tuple(TARGETS)
    return min(Campaign(targets, seed, options.seconds, options.cases).run(options.workers), 1)


if __name__ == "__main__":
    sys.exit(main())
