"""The commands and their options.

Each command is a function `run` in the module of its name in `commands/`, with the same parameters;
those about evidence are one, `given`. It is imported when the command runs, so that help is fast.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

from hylift.cli import examples, options
from hylift.cli.stderr import warnings_told

app = typer.Typer(
    name="hylift",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        typer.echo(f"hylift {version('hylift')}")
    except PackageNotFoundError:
        typer.echo("hylift, run from its source without being installed")
    raise typer.Exit


@app.callback(epilog=examples.ALL)
def hylift(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Probabilistic inference in hybrid relational models: marginals, MAP and log Z, with an
    honest statement of how far to trust them."""


def command(epilog: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command by its signature and its docstring."""

    def register(declared: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(declared)
        def call(**arguments: Any) -> None:
            with warnings_told(arguments["quiet"]):
                module = import_module(f"hylift.cli.commands.{declared.__name__}")
                if "evidence" in arguments:
                    names = ("evidence", "closed", "only_rows", "unmatched")
                    named = [arguments.pop(name) for name in names]
                    arguments["given"] = module.Given.of(*named)
                module.run(**arguments)

        vars(call)["__signature__"] = inspect.signature(declared, eval_str=True)
        app.command(epilog=epilog)(call)
        return declared

    return register


@command(examples.INFER)
@options.with_method_options
def infer(
    model: options.ModelFile,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    only_rows: options.OnlyRows = None,
    unmatched: options.Unmatched = "error",
    task: options.Tasks = None,
    query: options.Query = None,
    top: options.Top = None,
    by: options.By = None,
    output: options.Answered = None,
    arguments: options.Arguments = False,
    save: options.Save = None,
    max_bytes: options.MaxBytes = None,
    figure: options.MarginalFigure = None,
    convergence: options.Convergence = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    method: options.Method = "auto",
    **settings: Any,
) -> None:
    """Answer a model: marginals, the most probable assignment, log Z."""


@command(examples.RACE)
def race(
    model: options.ModelFile,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    only_rows: options.OnlyRows = None,
    unmatched: options.Unmatched = "error",
    methods: options.Methods = None,
    seconds: options.RaceSeconds = 30.0,
    lift: options.RaceLift = "exact",
    seed: options.Seed = 0,
    figure: options.RaceFigure = None,
    output: options.Raced = None,
    quiet: options.Quiet = False,
) -> None:
    """Race all methods on a model: time, log Z, marginals and MAP side by side."""


@command(examples.CHECK)
def check(
    model: options.ModelFile,
    rewrite: options.Rewrite = False,
    bethe: options.Bethe = False,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    only_rows: options.OnlyRows = None,
    unmatched: options.Unmatched = "error",
    output: options.Report = None,
    quiet: options.Quiet = False,
) -> None:
    """Report errors and warnings of a model of rules, with line, column and a remedy."""


@command(examples.GROUND)
def ground(
    model: options.RuleFile,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    only_rows: options.OnlyRows = None,
    unmatched: options.Unmatched = "error",
    stats: options.Stats = False,
    output: options.Ground = None,
    quiet: options.Quiet = False,
) -> None:
    """Ground a model of rules: count its variables and factors, with its evidence."""


@command(examples.EXPLAIN)
def explain(
    model: options.ModelFile,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    only_rows: options.OnlyRows = None,
    unmatched: options.Unmatched = "error",
    figure: options.ClassFigure = None,
    output: options.Explained = None,
    quiet: options.Quiet = False,
) -> None:
    """Report how far lifting shrinks a model, and which evidence breaks its symmetry."""


@command(examples.PLOT)
def plot(
    results: options.ResultFiles,
    kind: options.PlotKind = None,
    query: options.Query = None,
    sort: options.Sort = False,
    output: options.Drawn = None,
    max_bytes: options.MaxBytes = None,
    quiet: options.Quiet = False,
) -> None:
    """Draw posteriors saved by `hylift infer --save`."""


@command(examples.DEMO)
def demo(
    figure: options.MarginalFigure = None,
    output: options.Shown = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Solve a small hybrid model that comes with hylift, exactly and by BVI, and show both."""
