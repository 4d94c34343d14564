"""`python -m benchmarks [NAME …] [--data FOLDER] [--markdown FILE]`."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import hylift as hl
from benchmarks import (
    bounds,
    budgets,
    build,
    certified,
    expectation,
    families,
    foreign,
    gallery,
    gaussian,
    grounding,
    hard_rules,
    implicit,
    lifting,
    messages,
    methods,
    particles,
    uai,
    variances,
    variational,
    verdicts,
)
from benchmarks.families import calibration
from benchmarks.setting import VARIABLE, Setting, named_data

ALL = {
    "methods": methods.run,
    "bounds": bounds.run,
    "budgets": budgets.run,
    "build": build.run,
    "calibration": calibration.run,
    "certified": certified.run,
    "expectation": expectation.run,
    "families": families.run,
    "foreign": foreign.run,
    "gallery": gallery.run,
    "gaussian": gaussian.run,
    "grounding": grounding.run,
    "hard-rules": hard_rules.run,
    "implicit": implicit.run,
    "lifting": lifting.run,
    "messages": messages.run,
    "smc": particles.run,
    "uai": uai.run,
    "variances": variances.run,
    "variational": variational.run,
    "verdicts": verdicts.run,
}

EXAMPLES = """
  python -m benchmarks methods                                one of them
  python -m benchmarks uai --data FOLDER                      one that needs published data
  python -m benchmarks methods --markdown docs/methods.md     its figures in the docs written anew
  python -m benchmarks calibration --models 5640 --records FOLDER
  python -m benchmarks families --methods gibbs,bp --failures  some methods, wrong answers listed
"""


def main(arguments: list[str]) -> None:
    width = max(map(len, ALL))
    listed = "\n".join(f"  {name:{width}}  {run.__doc__}" for name, run in ALL.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Speed, accuracy and scale; without names all of\n\n{listed}",
        epilog=f"examples:{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which ones to run")
    parser.add_argument(
        "--data", type=Path, default=named_data(), metavar="FOLDER",
        help=f"published data, without which some are skipped (default: ${VARIABLE})",
    )  # fmt: skip
    parser.add_argument(
        "--markdown", metavar="FILE",
        help="a page in which 'methods' writes its figures anew; - for the screen",
    )  # fmt: skip
    parser.add_argument("--methods", default="", help="those of 'families', such as gibbs,bp")
    parser.add_argument("--families", default="", help="some of them, such as walks,regimes")
    parser.add_argument(
        "--models", type=int, default=120, help="how many 'families' or 'calibration' draws"
    )
    parser.add_argument(
        "--records", type=Path, metavar="FOLDER",
        help="where 'calibration' keeps its records, and resumes from them",
    )  # fmt: skip
    parser.add_argument("--first", type=int, default=0, help="the number of its first model")
    parser.add_argument("--failures", action="store_true", help="list them (families, foreign)")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in ALL]
    if unknown:
        parser.error(f"no benchmark '{unknown[0]}'; there are {', '.join(ALL)}")
    if options.markdown and options.names and "methods" not in options.names:
        parser.error("--markdown is for 'methods', which is not among those named")
    setting = Setting(
        options.data,
        options.markdown,
        tuple(filter(None, options.methods.split(","))),
        tuple(filter(None, options.families.split(","))),
        options.models,
        options.first,
        options.failures,
        options.records,
    )
    warnings.simplefilter("ignore", hl.DoubtWarning)  # a figure of some, noise in all
    for name in options.names or ALL:
        print(f"== {name}: {ALL[name].__doc__}", flush=True)
        ALL[name](setting)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except hl.HyliftError as error:
        sys.exit(f"benchmarks: {error}")
