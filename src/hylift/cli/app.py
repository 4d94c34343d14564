"""Commands and their options; what they do is imported when they run, so that help is quick."""

from __future__ import annotations

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


@app.command(epilog=examples.INFER)
@options.with_method_options
def infer(
    model: options.ModelFile,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    unmatched: options.Unmatched = "error",
    task: options.Tasks = None,
    query: options.Query = None,
    output: options.Answered = None,
    save: options.Save = None,
    figure: options.MarginalFigure = None,
    convergence: options.Convergence = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    method: options.Method = "auto",
    **settings: Any,
) -> None:
    """Answer a model: marginals, the most probable assignment, log Z."""
    from hylift.cli.commands.infer import Files, run
    from hylift.cli.method import MethodOptions
    from hylift.cli.model import Given

    with warnings_told(quiet):
        run(
            model,
            given=Given(evidence or (), closed or (), unmatched),
            how=MethodOptions.of(method, settings),
            named_tasks=task,
            query=query or None,
            files=Files.of(output, save, figure, convergence),
            seed=seed,
            quiet=quiet,
        )


@app.command(epilog=examples.RACE)
def race(
    model: options.ModelFile,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    unmatched: options.Unmatched = "error",
    methods: options.Methods = None,
    seconds: options.RaceSeconds = 30.0,
    lift: options.RaceLift = "exact",
    seed: options.Seed = 0,
    figure: options.RaceFigure = None,
    output: options.Raced = None,
    quiet: options.Quiet = False,
) -> None:
    """Race all methods on a model: time, log Z, marginals and MAP beside each other."""
    from hylift.cli.commands.race import RaceOptions, run
    from hylift.cli.model import Given

    given = Given(evidence or (), closed or (), unmatched)
    how = RaceOptions(methods or (), seconds, lift, seed)
    with warnings_told(quiet):
        run(model, given=given, how=how, figure=figure, output=output, quiet=quiet)


@app.command(epilog=examples.CHECK)
def check(
    model: options.ModelFile,
    rewrite: options.Rewrite = False,
    bethe: options.Bethe = False,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    unmatched: options.Unmatched = "error",
    output: options.Report = None,
    quiet: options.Quiet = False,
) -> None:
    """Say what is wrong with a model of rules, with line, column and a remedy."""
    from hylift.cli.commands.check import run
    from hylift.cli.model import Given

    given = Given(evidence or (), closed or (), unmatched)
    with warnings_told(quiet):
        run(model, given, rewrite=rewrite, bethe=bethe, output=output, quiet=quiet)


@app.command(epilog=examples.GROUND)
def ground(
    model: options.RuleFile,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    unmatched: options.Unmatched = "error",
    stats: options.Stats = False,
    output: options.Ground = None,
    quiet: options.Quiet = False,
) -> None:
    """Ground a model of rules: how many variables and factors it has, with its evidence."""
    from hylift.cli.commands.ground import run
    from hylift.cli.model import Given

    given = Given(evidence or (), closed or (), unmatched)
    with warnings_told(quiet):
        run(model, given, stats=stats, output=output, quiet=quiet)


@app.command(epilog=examples.EXPLAIN)
def explain(
    model: options.ModelFile,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    unmatched: options.Unmatched = "error",
    figure: options.ClassFigure = None,
    output: options.Explained = None,
    quiet: options.Quiet = False,
) -> None:
    """Say how far lifting shrinks a model, and which evidence breaks its symmetry."""
    from hylift.cli.commands.explain import run
    from hylift.cli.model import Given

    given = Given(evidence or (), closed or (), unmatched)
    with warnings_told(quiet):
        run(model, given, figure=figure, output=output, quiet=quiet)


@app.command(epilog=examples.PLOT)
def plot(
    results: options.ResultFiles,
    kind: options.PlotKind = None,
    query: options.Query = None,
    sort: options.Sort = False,
    output: options.Drawn = None,
    quiet: options.Quiet = False,
) -> None:
    """Draw posteriors that `hylift infer --save` has kept."""
    from hylift.cli.commands.plot import PlotOptions, run

    how = PlotOptions(kind, query or (), sort)
    with warnings_told(quiet):
        run(results, how=how, output=output, quiet=quiet)


@app.command(epilog=examples.DEMO)
def demo(
    figure: options.MarginalFigure = None,
    output: options.Shown = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Solve a small hybrid model that comes with hylift, exactly and by BVI, and show both."""
    from hylift.cli.commands.demo import run

    with warnings_told(quiet):
        run(figure=figure, output=output, seed=seed, quiet=quiet)
