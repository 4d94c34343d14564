"""Commands and their options; what they do is imported when they run, so that help is quick."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from hylift.cli import options

app = typer.Typer(
    name="hylift",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXAMPLES = """[bold]Examples[/bold]

hylift demo

hylift check papers.mln

hylift infer papers.mln --evidence facts.db --output result.json

hylift ground papers.mln --evidence In=in.parquet --closed In --stats

hylift explain papers.mln --evidence facts.db

hylift infer model.uai --evidence model.uai.evid --task map

hylift race model.uai --seconds 5
"""


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        typer.echo(f"hylift {version('hylift')}")
    except PackageNotFoundError:
        typer.echo("hylift, run from its source without being installed")
    raise typer.Exit


@app.callback(epilog=EXAMPLES)
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


INFER_EXAMPLES = """[bold]Examples[/bold]

hylift infer papers.mln --evidence facts.db --query 'Popularity(*)'

hylift infer papers.mln -e In=in.parquet --closed In --output marginals.csv

hylift infer papers.mln -e facts.csv --unmatched ignore --task map

hylift infer papers.mln -e facts.db --method bvi --components 5 --seconds 60

hylift infer model.uai --method bp --schedule residual --damping 0.2

hylift infer model.uai --evidence model.uai.evid --output model.PR

[bold]Outputs[/bold], by ending: .json (everything), .csv and .parquet (marginals, or the MAP \
assignment), .MAR, .PR, .MPE (UAI results); '-' prints JSON.
"""


@app.command(epilog=INFER_EXAMPLES)
def infer(
    model: options.ModelFile,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    unmatched: options.Unmatched = "error",
    task: options.Tasks = None,
    query: options.Query = None,
    output: options.Output = None,
    save: options.Save = None,
    figure: options.Figure = None,
    convergence: options.Convergence = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    method: options.Method = "auto",
    components: options.Components = None,
    lift: options.Lift = None,
    seconds: options.Seconds = None,
    restarts: options.Restarts = None,
    max_steps: options.MaxSteps = None,
    optimiser: options.Optimiser = None,
    learning_rate: options.LearningRate = None,
    reals: options.Reals = None,
    start: options.Start = None,
    damping: options.Damping = None,
    schedule: options.Schedule = None,
    particles: options.Particles = None,
    chains: options.Chains = None,
    draws: options.Draws = None,
    flips: options.Flips = None,
) -> None:
    """Answer a model: marginals, the most probable assignment, log Z."""
    from hylift.cli.infer import Files, run
    from hylift.cli.method import MethodOptions
    from hylift.cli.model import Given

    how = MethodOptions(
        method=method,
        components=components,
        lift=lift,
        seconds=seconds,
        restarts=restarts,
        max_steps=max_steps,
        optimiser=optimiser,
        learning_rate=learning_rate,
        reals=reals,
        start=start,
        damping=damping,
        schedule=schedule,
        particles=particles,
        chains=chains,
        draws=draws,
        flips=flips,
    )
    with _warnings_heard(quiet):
        run(
            model,
            given=Given(evidence or (), closed or (), unmatched),
            how=how,
            named_tasks=task,
            query=query or None,
            files=Files(output, save, figure, convergence),
            seed=seed,
            quiet=quiet,
        )


RACE_EXAMPLES = """[bold]Examples[/bold]

hylift race model.uai --evidence model.uai.evid

hylift race papers.mln -e facts.db --seconds 5 --figure race.png

hylift race papers.mln -e facts.db --methods exact,bvi,npvi --output race.csv
"""


@app.command(epilog=RACE_EXAMPLES)
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
    output: options.RaceOutput = None,
    quiet: options.Quiet = False,
) -> None:
    """Race all methods on a model: time, log Z, marginals and MAP beside each other."""
    from hylift.cli.model import Given
    from hylift.cli.race import RaceOptions, run

    how = RaceOptions(methods or (), seconds, lift, seed)
    with _warnings_heard(quiet):
        run(
            model,
            given=Given(evidence or (), closed or (), unmatched),
            how=how,
            figure=figure,
            output=output,
            quiet=quiet,
        )


CHECK_EXAMPLES = """[bold]Examples[/bold]

hylift check papers.mln

hylift check papers.mln --format

hylift check papers.mln --bethe --evidence facts.db

hylift check model.uai --bethe --evidence model.uai.evid
"""


@app.command(epilog=CHECK_EXAMPLES)
def check(
    model: options.ModelFile,
    rewrite: Annotated[
        bool, typer.Option("--format", help="Print the model in its canonical form.")
    ] = False,
    bethe: Annotated[
        bool,
        typer.Option(
            "--bethe",
            help="Say whether the model's Bethe free energy is bounded below, so that BVI cannot "
            "diverge; the model is grounded with its evidence.",
        ),
    ] = False,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    unmatched: options.Unmatched = "error",
) -> None:
    """Say what is wrong with a model of rules, with line, column and a remedy."""
    from hylift.cli.check import run
    from hylift.cli.model import Given

    given = Given(evidence or (), closed or (), unmatched)
    with _warnings_heard(quiet=False):
        run(model, given, rewrite=rewrite, bethe=bethe)


GROUND_EXAMPLES = """[bold]Examples[/bold]

hylift ground papers.mln --evidence facts.db --stats

hylift ground papers.mln --evidence In=in.parquet --closed In

hylift ground smokers.mln --output smokers.uai
"""


@app.command(epilog=GROUND_EXAMPLES)
def ground(
    model: options.RuleFile,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    unmatched: options.Unmatched = "error",
    stats: Annotated[
        bool, typer.Option("--stats", help="Also count atoms per predicate and factors per rule.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File for the ground model: .uai, for models of discrete variables.",
            show_default=False,
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Ground a model of rules: how many variables and factors it has, with its evidence."""
    from hylift.cli.ground import run
    from hylift.cli.model import Given

    given = Given(evidence or (), closed or (), unmatched)
    with _warnings_heard(quiet):
        run(model, given, stats=stats, output=output, quiet=quiet)


EXPLAIN_EXAMPLES = """[bold]Examples[/bold]

hylift explain papers.mln --evidence facts.db

hylift explain papers.mln -e In=in.parquet --closed In --figure classes.png

hylift explain model.uai -e model.uai.evid --output explanation.json
"""


@app.command(epilog=EXPLAIN_EXAMPLES)
def explain(
    model: options.ModelFile,
    evidence: options.Evidence = None,
    closed: options.Closed = None,
    unmatched: options.Unmatched = "error",
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also draw the classes into this file: .png, .pdf or .svg.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File for the numbers, in .json; '-' prints them.",
            show_default=False,
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Say how far lifting shrinks a model, and which evidence breaks its symmetry."""
    from hylift.cli.explain import run
    from hylift.cli.model import Given

    given = Given(evidence or (), closed or (), unmatched)
    with _warnings_heard(quiet):
        run(model, given, figure=figure, output=output, quiet=quiet)


@contextmanager
def _warnings_heard(quiet: bool) -> Iterator[None]:
    """Warnings are lines on the error stream; none when quiet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of arithmetic; results are checked
        warnings.simplefilter("ignore" if quiet else "always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: print(
            f"hylift: warning: {message}", file=sys.stderr
        )
        yield


@app.command(epilog="[bold]Examples[/bold]\n\nhylift demo\n\nhylift demo --figure marginals.png\n")
def demo(figure: options.Figure = None) -> None:
    """Solve a small hybrid model that comes with hylift, exactly and by BVI, and show both."""
    from hylift.cli.demo import run

    run(figure)
