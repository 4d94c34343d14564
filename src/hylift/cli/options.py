"""Arguments and options of the commands, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

METHODS = (
    *("auto", "exact", "bvi", "npvi", "mean-field"),
    *("bp", "gabp", "epbp", "gibbs", "maxwalksat"),
)
OPTIMISERS = ("natural", "adam")

ModelFile = Annotated[
    Path, typer.Argument(help="Model file: .mln (rules) or .uai (tables).", show_default=False)
]
RuleFile = Annotated[Path, typer.Argument(help="Model file: .mln.", show_default=False)]
Evidence = Annotated[
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
Closed = Annotated[
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
Unmatched = Annotated[
    str,
    typer.Option(
        "--unmatched",
        metavar="error|ignore",
        help="What to do with rows of evidence about predicates or constants that the model does "
        "not have.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]

Tasks = Annotated[
    list[str] | None,
    typer.Option(
        "--task",
        "-t",
        metavar="TASK",
        help="What to answer: marginals, map, logz; may be repeated.  "
        r"\[default: marginals and logz, of maxwalksat map]",
        show_default=False,
    ),
]
Query = Annotated[
    list[str] | None,
    typer.Option(
        "--query",
        "-q",
        metavar="ATOM",
        help="Variables to show, as a name, a pattern such as 'x1*', or a .query file; "
        r"may be repeated.  \[default: all that are not observed]",
        show_default=False,
    ),
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="File for the result.", show_default=False),
]
Seed = Annotated[int, typer.Option(help="Seed of whatever is random.")]

HOW = "How to answer"
"""The panel of options about methods."""

Method = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        metavar="METHOD",
        help=f"{', '.join(METHODS)}. auto is exact where that is cheap and else bvi, and says so.",
        rich_help_panel=HOW,
    ),
]
Components = Annotated[
    int | None,
    typer.Option(
        "--components",
        "-k",
        metavar="K",
        help=r"Products in the mixture of bvi or npvi.  \[default: 3]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Lift = Annotated[
    str | None,
    typer.Option(
        metavar="LIFT",
        help="Whether look-alikes are solved once: exact, coarse-to-fine (variational methods, for "
        r"real evidence that breaks the symmetry) or none.  \[default: exact]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        help="Time after which a method returns the best it has.",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Restarts = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Random starts of a variational method or of maxwalksat, of which the best is kept.  "
        r"\[default: 5, of npvi 10, of maxwalksat 3]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
MaxSteps = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help=r"Steps after which to give up.  \[default: 1000]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Optimiser = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=r"natural (natural gradients, then L-BFGS) or adam.  \[default: natural]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
LearningRate = Annotated[
    float | None,
    typer.Option(
        metavar="RATE",
        help=r"Length of the steps of adam.  \[default: 0.2]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Reals = Annotated[
    str | None,
    typer.Option(
        metavar="FAMILY",
        help="Components of bounded reals: gaussian, beta, or auto, which is beta where bounds "
        r"matter.  \[default: auto]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Damping = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Share of its old value that a message of bp, gabp or epbp keeps; 0.5 often helps "
        r"where they oscillate.  \[default: 0 or 0.5, by the graph]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Schedule = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Messages that bp sends at a step: flooding (all) or residual (those that change "
        r"most).  \[default: flooding]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Particles = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help=r"Points per real of epbp.  \[default: 50]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Chains = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help=r"Chains of gibbs, side by side.  \[default: 4]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Draws = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help=r"Draws that gibbs keeps of each chain.  \[default: 1000]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Flips = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help=r"Moves of maxwalksat from each start.  \[default: 1000000]",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Start = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A posterior of an earlier run to begin from, as written by --save.",
        show_default=False,
        rich_help_panel=HOW,
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also keep the posterior in this file: .npz, for --start and Posterior.load.",
        show_default=False,
    ),
]
Figure = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also draw the marginals into this file: .png, .pdf or .svg.",
        show_default=False,
    ),
]
Convergence = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also draw the objective of a method that takes steps against time into this file.",
        show_default=False,
    ),
]

Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--methods",
        "-m",
        metavar="NAMES",
        help="Who runs, such as bvi,gabp: exact, mean-field, bvi, bvi-coarse-to-fine, npvi, bp, "
        r"gabp, epbp, gibbs, maxwalksat; may be repeated.  \[default: all that apply]",
        show_default=False,
    ),
]
RaceSeconds = Annotated[
    float, typer.Option("--seconds", metavar="S", help="Time that each method may take.")
]
RaceLift = Annotated[
    str,
    typer.Option(
        "--lift",
        metavar="LIFT",
        help="Whether look-alikes are solved once: exact, coarse-to-fine or none.",
    ),
]
RaceFigure = Annotated[
    Path | None,
    typer.Option(
        "--figure",
        metavar="FILE",
        help="Also draw quality against time into this file: .png, .pdf or .svg.",
        show_default=False,
    ),
]
RaceOutput = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File for the table: .csv, .parquet or .json; '-' prints JSON.",
        show_default=False,
    ),
]
