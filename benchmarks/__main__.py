"""`python -m benchmarks [NAME …] [--data FOLDER] [--figure FILE]`."""

import argparse
import sys
from pathlib import Path

from benchmarks import build, gaussian, grounding, lifting, messages, uai, variational

ALL = {
    "build": build.run,
    "gaussian": gaussian.run,
    "grounding": grounding.run,
    "lifting": lifting.run,
    "messages": messages.run,
    "uai": uai.run,
    "variational": variational.run,
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ALL)}")
    parser.add_argument(
        "--data", type=Path, default=variational.DATA, metavar="FOLDER",
        help="published data, for some of them (default: $HYLIFT_DATA or ../shared/data)",
    )  # fmt: skip
    parser.add_argument(
        "--figure", type=Path, metavar="FILE", help="where 'variational' draws objectives"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in ALL]
    if unknown:
        sys.exit(f"no benchmark '{unknown[0]}'; there are {', '.join(ALL)}")
    for name in options.names or ALL:
        print(f"== {name}: {ALL[name].__doc__}", flush=True)
        if name == "variational":
            variational.run(options.data, options.figure)
        elif name == "messages":
            messages.run(options.data)
        else:
            ALL[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
