"""Commands and their options; what they do is imported when they run, so that help is quick."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

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

hylift infer model.uai

hylift infer model.uai --evidence model.uai.evid --task map --output best.json

hylift infer model.uai --query 'x1*' --output marginals.csv
"""


@app.callback(epilog=EXAMPLES)
def hylift(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Probabilistic inference in hybrid relational models: marginals, MAP and log Z, with an
    honest statement of how far to trust them."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"hylift {installed('hylift')}")
        raise typer.Exit


INFER_EXAMPLES = """[bold]Examples[/bold]

hylift infer model.uai

hylift infer model.uai --evidence model.uai.evid --task map --task logz

hylift infer model.uai --query x3 --query 'x1*' --output marginals.csv

hylift infer model.uai --output model.MAR

[bold]Outputs[/bold], by ending: .json (everything), .csv and .parquet (marginals, or the MAP \
assignment), .MAR, .PR, .MPE (UAI results); '-' prints JSON.
"""


@app.command(epilog=INFER_EXAMPLES)
def infer(
    model: Annotated[Path, typer.Argument(help="Model file: .uai.", show_default=False)],
    evidence: Annotated[
        Path | None,
        typer.Option("--evidence", "-e", help="What is observed: .evid.", show_default=False),
    ] = None,
    method: Annotated[
        Literal["exact"], typer.Option("--method", "-m", help="How to answer.")
    ] = "exact",
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            "-t",
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
        typer.Option("--output", "-o", help="File for the result.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of whatever is random.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Answer a model: marginals, the most probable assignment, log Z."""
    from hylift.cli.infer import run

    run(
        model,
        evidence=evidence,
        method=method,
        named_tasks=task,
        query=query or None,
        output=output,
        seed=seed,
        quiet=quiet,
    )


@app.command(epilog="[bold]Examples[/bold]\n\nhylift demo\n\nhylift demo --figure marginals.png\n")
def demo(
    figure: Annotated[
        Path | None,
        typer.Option(help="Also draw the marginals into this file.", show_default=False),
    ] = None,
) -> None:
    """Run exact inference on a small hybrid model that comes with hylift, and show the result."""
    from hylift.cli.demo import run

    run(figure)


def main() -> None:
    """Runs the command line: 0 when it worked, 2 and one line on stderr for bad input."""
    try:
        app()
    except HyliftError as error:
        print(f"hylift: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("hylift: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
