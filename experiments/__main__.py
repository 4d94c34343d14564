"""`python -m experiments NAME …`: the paper's tables and figures, beside ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.instances import Variant
    from experiments.report import Outcome, Row
    from experiments.setting import Setting

EPILOG = """[bold]Examples[/bold]

python -m experiments toy

python -m experiments rgm --data DATA --quick

python -m experiments all --out results
"""


class Name(StrEnum):
    """Experiments, in the order of the paper."""

    TOY = "toy"
    PAPERS = "papers"
    ROBOT = "robot"
    RGM = "rgm"
    KALMAN_TREE = "kalman-tree"
    KALMAN_CYCLE = "kalman-cycle"
    GROUNDWATER = "groundwater"
    ALL = "all"


class Variants(StrEnum):
    PAPER = "paper"
    CLEAN = "clean"
    BOTH = "both"


app = typer.Typer(
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(epilog=EPILOG)
def run(
    name: Annotated[
        Name,
        typer.Argument(
            metavar="NAME",
            help="toy (Table 1, Figure 1), papers and robot (Figure 2), rgm (Table 2, Figure 3), "
            "kalman-tree and kalman-cycle (Table 3), groundwater (all wells), or all.",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the published data; without one, evidence of the same kind and size "
            "is generated.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repetitions of timed runs.")
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for tables, numbers and pictures.")
    ] = Path("results"),
    variant: Annotated[
        Variants,
        typer.Option(
            help="Evidence with the quirks of the paper's (paper), done right (clean), or both; "
            "toy, rgm and groundwater have one kind only."
        ),
    ] = Variants.BOTH,
) -> None:
    """Run an experiment of "Lifted Hybrid Variational Inference", print its figures beside the
    paper's, and write them to files (.csv, .json, .png)."""
    from experiments.instances import Variant
    from experiments.report.show import show_summary
    from experiments.report.write import make_folder
    from hylift.cli.render import console
    from hylift.errors import HyliftError

    if data is not None and not data.is_dir():
        raise typer.BadParameter(f"there is no folder '{data}'", param_hint="--data")
    chosen = [one for one in Name if one is not Name.ALL] if name is Name.ALL else [name]
    variants = tuple(one for one in get_args(Variant) if variant in (Variants.BOTH, one))
    terminal = console()
    make_folder(out)
    _load_kernels()
    rows: list[Row] = []
    failed: list[str] = []
    begin = time.perf_counter()
    for one in chosen:
        try:
            rows += _run_one(terminal, one, data, quick, variants, out).rows
        except HyliftError as error:
            if len(chosen) == 1:
                raise
            failed.append(f"{one.value}: {error}")  # the others still run
    if len(chosen) > 1:
        show_summary(terminal, rows)
        terminal.print(f"{time.perf_counter() - begin:.0f} s in all.", highlight=False)
    if failed:
        raise HyliftError("\n".join(["not all experiments ran", *failed]))


def _run_one(
    terminal: Console,
    name: Name,
    data: Path | None,
    quick: bool,
    variants: tuple[Variant, ...],
    out: Path,
) -> Outcome:
    """Runs an experiment, shows what came of it, and writes it to files."""
    from experiments.report.show import show
    from experiments.report.write import write
    from experiments.setting import Setting
    from hylift.cli.render import progress_bar

    start = time.perf_counter()
    with progress_bar(quiet=False) as progress:
        outcome = _experiment(name)(Setting(data, quick, variants, progress))
    seconds = time.perf_counter() - start
    show(terminal, outcome)
    names = ", ".join(path.name for path in write(outcome, name.value, out))
    terminal.print(f"{seconds:.1f} s; in {out}: {names}", highlight=False, markup=False)
    return outcome


def _experiment(name: Name) -> Callable[[Setting], Outcome]:
    """What runs an experiment; imported when it is asked for, so that help is quick."""
    match name:
        case Name.KALMAN_TREE:
            from experiments.kalman import run_tree as found
        case Name.KALMAN_CYCLE:
            from experiments.kalman import run_cycle as found
        case _:
            found = import_module(f"experiments.{name.value}").run
    return found


def _load_kernels() -> None:
    """So that no time is measured in which code is loaded or compiled."""
    from hylift.cli.render import progress_bar
    from hylift.warm_up import warm_up

    with progress_bar(quiet=False) as progress:
        progress(0.0, "loading kernels")
        warm_up()


if __name__ == "__main__":
    from hylift.cli.main import run as run_commands

    run_commands(app, "python -m experiments")
