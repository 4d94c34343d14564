"""Arguments and options of the commands, with their help."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from hylift.inference.capabilities import METHOD_BY_KEY, OPTIONS, RACE_KEYS, Option


def option(*names: str, metavar: str, help: str, panel: str | None = None) -> Any:
    """An option whose default the help does not show."""
    return typer.Option(
        *names, metavar=metavar, help=help, show_default=False, rich_help_panel=panel
    )


def flag(name: str, help: str) -> Any:
    """An option without a value, so that its help has no type."""
    return typer.Option(name, metavar="", help=help)


def output(help: str) -> Any:
    """The option that names a file for the result of a command."""
    return option("--output", "-o", metavar="FILE", help=help)


def figure(what: str) -> Any:
    """The option that names a file for a picture."""
    help = f"Also draw {what} into this file: .png, .pdf or .svg."
    return option("--figure", metavar="FILE", help=help)


ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="Model file: .mln (rules) or .uai (tables).", show_default=False
    ),
]
RuleFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file: .mln.", show_default=False)
]
ResultFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="RESULT",
        help="Posteriors saved by `hylift infer --save`: .npz. Several are drawn over each other.",
        show_default=False,
    ),
]

# Evidence
Evidence = Annotated[
    list[str] | None,
    option(
        "--evidence",
        "-e",
        metavar="[NAME=]FILE",
        help="Observations: a .db of facts, a table (.csv, .tsv, .parquet, .arrow) with "
        "columns predicate, arg1, …, value, or a .sqlite or .duckdb database; NAME=FILE is a table "
        r"of one predicate, or of the constants of a type; NAME=FILE\[COLUMN,…] is some columns of "
        "one. For a .uai model an .evid file. May be repeated.",
    ),
]
Closed = Annotated[
    list[str] | None,
    option(
        "--closed",
        "-c",
        metavar="PREDICATE",
        help="A Boolean predicate whose atoms are false unless the evidence says they are true; "
        "may be repeated.",
    ),
]
OnlyRows = Annotated[
    list[str] | None,
    option(
        "--only-rows",
        metavar="PREDICATE",
        help="A predicate whose atoms exist only where its table has rows; may be repeated.",
    ),
]
Unmatched = Annotated[
    str,
    typer.Option(
        metavar="error|ignore",
        help="What to do with rows of evidence about predicates or constants that the model does "
        "not have.",
    ),
]

# What to answer
Tasks = Annotated[
    list[str] | None,
    option(
        "--task",
        "-t",
        metavar="TASK",
        help="What to answer: marginals, map, logz; may be repeated.  "
        r"\[default: marginals and logz, of maxwalksat map]",
    ),
]
Query = Annotated[
    list[str] | None,
    option(
        "--query",
        "-q",
        metavar="ATOM",
        help="Variables to show, in this order: a name, a predicate for its atoms that are not "
        "observed, a pattern such as 'x1*' for all that match, or a .query file; "
        r"may be repeated.  \[default: all that are not observed]",
    ),
]
Top = Annotated[
    int | None,
    option(
        "--top",
        metavar="N",
        help="Show and write only the N variables with the largest numbers, see --by.",
    ),
]
By = Annotated[
    str | None,
    option(
        "--by",
        metavar="NUMBER",
        help="Put the largest first: prob (of being true, or of the likeliest state), or of reals "
        r"mean, std, mode, q05, q50 or q95.  \[default with --top: prob, or mean of reals alone]",
    ),
]
Arguments = Annotated[
    bool,
    flag(
        "--arguments",
        "Write tables with a column per argument instead of the name; for atoms of one predicate.",
    ),
]
Rewrite = Annotated[bool, flag("--format", "Print the model in its canonical form.")]
Bethe = Annotated[
    bool,
    flag(
        "--bethe",
        "Report whether the model's Bethe free energy is bounded below, so that BVI cannot "
        "diverge; the model is grounded with its evidence.",
    ),
]
Stats = Annotated[bool, flag("--stats", "Also count atoms per predicate and factors per rule.")]
PlotKind = Annotated[
    str | None,
    option(
        metavar="KIND",
        help="marginals (a panel each), forest (a line each) or convergence (the objective against "
        r"time).  \[default: marginals where there is room, else forest]",
    ),
]
Sort = Annotated[bool, flag("--sort", "Put the largest of a forest on top.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of all randomness.")]
Quiet = Annotated[bool, flag("--quiet", "Print nothing but errors.")]

# Files to write
Report = Annotated[
    str | None, output("File for the counts and all warnings, in .json; '-' prints them.")
]
Ground = Annotated[
    str | None,
    output(
        "File for the ground model: .uai, for models of discrete variables; or for the counts: "
        ".json, .csv or .parquet; '-' prints JSON."
    ),
]
Explained = Annotated[
    str | None,
    output(
        "File for the numbers: .json; or for the class of each variable: .csv or .parquet; "
        "'-' prints JSON."
    ),
]
Answered = Annotated[str | None, output("File for the result; see below for the endings.")]
Raced = Annotated[
    str | None, output("File for the table: .json, .csv or .parquet; '-' prints JSON.")
]
Shown = Annotated[
    str | None, output("File for both answers: .json, .csv or .parquet; '-' prints JSON.")
]
Drawn = Annotated[
    Path | None,
    output(
        "File for the figure: .png, .pdf or .svg.  "
        r"\[default: RESULT-KIND.png here; where there is one, with a number]"
    ),
]
ClassFigure = Annotated[Path | None, figure("the classes")]
MarginalFigure = Annotated[Path | None, figure("the marginals")]
RaceFigure = Annotated[Path | None, figure("quality against time")]
Save = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="Also save the posterior in this file: .npz, for --start and Posterior.load.",
    ),
]
MaxBytes = Annotated[
    int | None,
    option(
        metavar="N",
        help="Most memory that a saved posterior may take when read.  "
        r"\[default: 256 MB, or 20 times the file]",
    ),
]
Convergence = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="Also draw the objective of a method that takes steps against time into this file.",
    ),
]

# Methods
HOW = "How to answer"
"""The panel of options about methods."""

Method = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        metavar="METHOD",
        help=f"{', '.join(['auto', *METHOD_BY_KEY])}. auto is exact where that is cheap and else "
        "ep, checked by smc or gibbs, or bvi, by the size of the graph, with a note.",
        rich_help_panel=HOW,
    ),
]
Methods = Annotated[
    list[str] | None,
    option(
        "--methods",
        "-m",
        metavar="NAMES",
        help=f"Methods to run, such as bvi,gabp: {', '.join(RACE_KEYS)}; may be repeated.  "
        r"\[default: all that apply]",
    ),
]
RaceSeconds = Annotated[float, typer.Option(metavar="S", help="Time limit of each method.")]
RaceLift = Annotated[
    str,
    typer.Option(metavar="LIFT", help="Solve look-alikes once: exact, coarse-to-fine or none."),
]


def with_method_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each setting of a method in place of its `**settings`."""
    signature = inspect.signature(command, eval_str=True)
    named = [one for one in signature.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    settings = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(one))
        for one in OPTIONS
    ]
    vars(command)["__signature__"] = signature.replace(parameters=[*named, *settings])
    return command


def _annotation(one: Option) -> Any:
    names = [f"--{one.name.replace('_', '-')}", *([one.short] if one.short else [])]
    return Annotated[one.type | None, option(*names, metavar=one.metavar, help=one.help, panel=HOW)]
