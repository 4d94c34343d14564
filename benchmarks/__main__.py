"""`python -m benchmarks [NAME …]`."""

import sys

from benchmarks import build, gaussian, grounding, lifting, uai

ALL = {
    "build": build.run,
    "gaussian": gaussian.run,
    "grounding": grounding.run,
    "lifting": lifting.run,
    "uai": uai.run,
}


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in ALL]
    if unknown:
        sys.exit(f"no benchmark '{unknown[0]}'; there are {', '.join(ALL)}")
    for name in names or ALL:
        print(f"== {name}: {ALL[name].__doc__}")
        ALL[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
