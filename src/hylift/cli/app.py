"""Commands and their options; what they do is imported when they run, so that help is quick."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from hylift.errors import HyliftError

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
"""

ModelFile = Annotated[
    Path, typer.Argument(help="Model file: .mln (rules) or .uai (tables).", show_default=False)
]
RuleFile = Annotated[Path, typer.Argument(help="Model file: .mln.", show_default=False)]
EvidenceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        "-e",
        metavar="[NAME=]FILE",
        help="What is observed: a .db of facts, a table (.csv, .tsv, .parquet, .arrow) with "
        "columns predicate, arg1, …, value, or a .sqlite or .duckdb database; NAME=FILE is a table "
        "of one predicate, or of the constants of a type. For a .uai model an .evid file. May be "
        "repeated.",
        show_default=False,
    ),
]
ClosedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--closed",
        "-c",
        metavar="PREDICATE",
        help="A Boolean predicate whose atoms are false unless the evidence says they are true; "
        "may be repeated.",
        show_default=False,
    ),
]
UnmatchedOption = Annotated[
    str,
    typer.Option(
        "--unmatched",
        metavar="error|ignore",
        help="What to do with rows of evidence about predicates or constants that the model does "
        "not have.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]


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

hylift infer model.uai --evidence model.uai.evid --output model.PR

[bold]Outputs[/bold], by ending: .json (everything), .csv and .parquet (marginals, or the MAP \
assignment), .MAR, .PR, .MPE (UAI results); '-' prints JSON.
"""


@app.command(epilog=INFER_EXAMPLES)
def infer(
    model: ModelFile,
    evidence: EvidenceOption = None,
    closed: ClosedOption = None,
    unmatched: UnmatchedOption = "error",
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="METHOD", help="How to answer: exact.")
    ] = "exact",
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            "-t",
            metavar="TASK",
            help="What to answer: marginals, map, logz; may be repeated.  "
            r"\[default: marginals and logz]",
            show_default=False,
        ),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            "-q",
            metavar="ATOM",
            help="Variables to show, as a name, a pattern such as 'x1*', or a .query file; "
            r"may be repeated.  \[default: all that are not observed]",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File for the result.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of whatever is random.")] = 0,
    quiet: QuietOption = False,
) -> None:
    """Answer a model: marginals, the most probable assignment, log Z."""
    from hylift.cli.infer import run
    from hylift.cli.model import Given

    with _warnings_heard(quiet):
        run(
            model,
            given=Given(evidence or (), closed or (), unmatched),
            method=method,
            named_tasks=task,
            query=query or None,
            output=output,
            seed=seed,
            quiet=quiet,
        )


CHECK_EXAMPLES = """[bold]Examples[/bold]

hylift check papers.mln

hylift check papers.mln --format
"""


@app.command(epilog=CHECK_EXAMPLES)
def check(
    model: RuleFile,
    rewrite: Annotated[
        bool, typer.Option("--format", help="Print the model in its canonical form.")
    ] = False,
) -> None:
    """Say what is wrong with a model of rules, with line, column and a remedy."""
    from hylift.cli.check import run

    run(model, rewrite=rewrite)


GROUND_EXAMPLES = """[bold]Examples[/bold]

hylift ground papers.mln --evidence facts.db --stats

hylift ground papers.mln --evidence In=in.parquet --closed In

hylift ground smokers.mln --output smokers.uai
"""


@app.command(epilog=GROUND_EXAMPLES)
def ground(
    model: RuleFile,
    evidence: EvidenceOption = None,
    closed: ClosedOption = None,
    unmatched: UnmatchedOption = "error",
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
    quiet: QuietOption = False,
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
    model: ModelFile,
    evidence: EvidenceOption = None,
    closed: ClosedOption = None,
    unmatched: UnmatchedOption = "error",
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
    quiet: QuietOption = False,
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
def demo(
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also draw the marginals into this file.", show_default=False
        ),
    ] = None,
) -> None:
    """Run exact inference on a small hybrid model that comes with hylift, and show the result."""
    from hylift.cli.demo import run

    run(figure)


USAGE_ERROR: type[Exception] = typer.BadParameter.mro()[1]
"""The parent of all errors about commands and options; Typer has no name for it."""


def main() -> None:
    """Runs the command line, and ends with an exit code.

    0: it worked; 1: nobody reads the output; 2: bad input or a full disk, with one line on
    stderr; 130: interrupted.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may have no bars or Greek letters
    try:
        code = app(prog_name="hylift", standalone_mode=False)
        sys.stdout.flush()
    except HyliftError as error:
        _end(2, str(error))
    except USAGE_ERROR as error:
        _end(2, _usage(error))
    except MemoryError:
        _end(2, "there is not enough memory")
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)
    except OSError as error:
        if error.filename is not None:  # files are told about where they are read and written
            raise
        _drop_output()
        _end(2, f"standard output cannot be written: {error.strerror or error}")
    except SystemError as error:
        # Ctrl-C while a compiled kernel is loaded or called comes as the cause of another error.
        if not _is_interrupt(error):
            raise
        code = 130
    if code == 130:
        _end(130, "interrupted")
    sys.exit(code)


def _drop_output() -> None:
    """Forgets what is left in the buffer, which would fail again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C is what led to an error."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, KeyboardInterrupt):
        found = found.__cause__ or found.__context__
    return found is not None


def _end(code: int, line: str) -> NoReturn:
    if line:
        print(f"hylift: {line}", file=sys.stderr)
    sys.exit(code)


def _usage(error: Any) -> str:
    """An error about commands and options in one line; nothing where help was shown instead."""
    text = " ".join(error.format_message().split())
    return f"{text} (see '{error.ctx.command_path} --help')" if text and error.ctx else text
