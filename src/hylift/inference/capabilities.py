"""The methods and what each of them can do: the one list that commands, races and plots read.

A new method is its own folder and an entry in `METHODS`. Nothing heavy is imported here, so that
`hylift --help` is quick.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from hylift.inference.method import Method

Task = Literal["marginals", "logz", "map"]
Lift = Literal["exact", "coarse-to-fine", "none"]


@dataclass(frozen=True, slots=True)
class Option:
    """A setting that the command line offers for some methods."""

    name: str
    type: type
    metavar: str
    help: str
    short: str | None = None
    """A letter with a dash."""
    choices: tuple[str, ...] = ()
    """What it may be; empty where the method itself checks it."""
    is_field: bool = True
    """Whether it is a field of the methods that have it."""


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """What a method is called and what it can do.

    The defaults are those of a user's own method that says nothing of itself.
    """

    key: str
    """Its name on the command line and in races."""
    cls: str
    """Its class, as `package:name`, below `hylift.inference`."""
    label: str
    """Its name in tables and plots, without settings."""
    answers: tuple[Task, ...] = ("marginals", "logz", "map")
    lift: Lift = "coarse-to-fine"
    """The most that it can do to solve look-alikes once."""
    can_start: bool = False
    """Whether it may begin at an earlier posterior."""
    has_steps: bool = False
    """Whether it takes steps with an objective, which can be drawn."""
    is_timed: bool = False
    """Whether it returns the best so far after some time, and keeps checkpoints."""
    trust: Literal["exact", "draws"] | None = None
    """Why a race measures others by it: it is exact, or its draws have converged."""
    proves_impossible: bool = True
    """Whether evidence that it calls impossible is."""
    races_coarse: bool = False
    """Whether a race has it a second time, with coarse-to-fine lifting."""
    options: tuple[Option, ...] = ()


COMPONENTS = Option(
    "components", int, "K", r"Products in the mixture of bvi or npvi.  \[default: 3]", "-k"
)
RESTARTS = Option(
    "restarts",
    int,
    "N",
    "Random starts of a variational method or of maxwalksat, of which the best is kept.  "
    r"\[default: 5, of npvi 10, of maxwalksat 3]",
)
MAX_STEPS = Option("max_steps", int, "N", r"Steps after which to give up.  \[default: 1000]")
OPTIMISER = Option(
    "optimiser",
    str,
    "NAME",
    r"natural (natural gradients, then L-BFGS) or adam.  \[default: natural]",
    choices=("natural", "adam"),
)
LEARNING_RATE = Option(
    "learning_rate",
    float,
    "RATE",
    r"Length of the steps of adam.  \[default: 0.2]",
    is_field=False,
)
REALS = Option(
    "reals",
    str,
    "FAMILY",
    "Components of bounded reals: gaussian, beta, or auto, which is beta where bounds matter.  "
    r"\[default: auto]",
    choices=("auto", "gaussian", "beta"),
)
DAMPING = Option(
    "damping",
    float,
    "SHARE",
    "Share of its old value that a message of bp, gabp or epbp keeps; 0.5 often helps where they "
    r"oscillate.  \[default: 0 or 0.5, by the graph]",
)
SCHEDULE = Option(
    "schedule",
    str,
    "NAME",
    "Messages that bp sends at a step: flooding (all) or residual (those that change most).  "
    r"\[default: flooding]",
)
PARTICLES = Option("particles", int, "N", r"Points per real of epbp.  \[default: 50]")
CHAINS = Option("chains", int, "N", r"Chains of gibbs, side by side.  \[default: 4]")
DRAWS = Option("draws", int, "N", r"Draws that gibbs keeps of each chain.  \[default: 1000]")
WARM_UP = Option(
    "warm_up",
    int,
    "N",
    r"Draws of each chain of gibbs before those that it keeps.  \[default: 500]",
)
MERGE_FACTORS = Option(
    "merge_factors", bool, "", "Make factors of bvi, bp or epbp that share their variables one."
)
FLIPS = Option("flips", int, "N", r"Moves of maxwalksat from each start.  \[default: 1000000]")

# Options of every method that can do something, whatever it is.
LIFT = Option(
    "lift",
    str,
    "LIFT",
    "Whether look-alikes are solved once: exact, coarse-to-fine (variational methods, for real "
    r"evidence that breaks the symmetry) or none.  \[default: exact]",
    choices=get_args(Lift),
    is_field=False,
)
SECONDS = Option(
    "seconds", float, "S", "Time after which a method returns the best it has.", is_field=False
)
CHECKPOINT = Option(
    "checkpoint",
    Path,
    "FILE",
    "Keep the run in this file now and then; if it is there, go on from it.",
    is_field=False,
)
START = Option(
    "start",
    Path,
    "FILE",
    "A posterior of an earlier run to begin from, as written by --save.",
    is_field=False,
)

VARIATIONAL: dict[str, Any] = {"can_start": True, "has_steps": True, "is_timed": True}
MESSAGES: dict[str, Any] = {"lift": "exact", "has_steps": True, "is_timed": True}
FITTED = (RESTARTS, MAX_STEPS, OPTIMISER, LEARNING_RATE, REALS)

METHODS = (
    MethodInfo("exact", "exact:Exact", "exact", lift="none", trust="exact"),
    MethodInfo("mean-field", "variational:MeanField", "mean field", options=FITTED, **VARIATIONAL),
    MethodInfo(
        "bvi",
        "variational:BVI",
        "BVI",
        races_coarse=True,
        options=(COMPONENTS, *FITTED, MERGE_FACTORS),
        **VARIATIONAL,
    ),
    MethodInfo("npvi", "variational:NPVI", "NPVI", options=(COMPONENTS, *FITTED), **VARIATIONAL),
    MethodInfo(
        "bp", "message:BP", "BP", options=(MAX_STEPS, DAMPING, SCHEDULE, MERGE_FACTORS), **MESSAGES
    ),
    MethodInfo("gabp", "message:GaBP", "GaBP", options=(MAX_STEPS, DAMPING), **MESSAGES),
    MethodInfo(
        "epbp",
        "message:EPBP",
        "EPBP",
        options=(MAX_STEPS, DAMPING, PARTICLES, MERGE_FACTORS),
        **MESSAGES,
    ),
    MethodInfo(
        "gibbs",
        "sampling:Gibbs",
        "Gibbs",
        answers=("marginals", "map"),
        lift="none",
        is_timed=True,
        trust="draws",
        proves_impossible=False,
        options=(CHAINS, DRAWS, WARM_UP),
    ),
    MethodInfo(
        "maxwalksat",
        "search.maxwalksat:MaxWalkSAT",
        "MaxWalkSAT",
        answers=("map",),
        lift="none",
        can_start=True,
        has_steps=True,
        is_timed=True,
        options=(RESTARTS, FLIPS),
    ),
)
"""All methods, in the order in which they are listed and raced."""

METHOD_BY_KEY = {info.key: info for info in METHODS}


COARSE = "-coarse-to-fine"
RACE_KEYS = tuple(
    key
    for info in METHODS
    for key in ([info.key, info.key + COARSE] if info.races_coarse else [info.key])
)
"""Names in a race: methods, and some of them a second time with coarse-to-fine lifting."""

ABOUT_RUNS: dict[Option, Callable[[MethodInfo], bool]] = {
    LIFT: lambda info: info.lift != "none",
    SECONDS: lambda info: info.is_timed,
    CHECKPOINT: lambda info: info.is_timed,
    START: lambda info: info.can_start,
}
"""Options that go with what a method can do."""

OPTIONS: tuple[Option, ...] = tuple(
    dict.fromkeys([*ABOUT_RUNS, *(option for info in METHODS for option in info.options)])
)


def fitting_methods(option: Option) -> list[str]:
    """The keys of the methods that an option is for."""
    fits = ABOUT_RUNS.get(option)
    return [info.key for info in METHODS if (fits(info) if fits else option in info.options)]


def class_name(info: MethodInfo) -> str:
    """The name of its class in Python."""
    return info.cls.partition(":")[2]


def method_by_key(key: str) -> Method:
    """The method with its default settings; only what it needs is imported."""
    from hylift import inference

    found: Method = getattr(inference, class_name(METHOD_BY_KEY[key]))()
    return found


def info_of(method: object) -> MethodInfo:
    """What a method can do; its attribute `info`, if it is a user's own and has one."""
    own = getattr(method, "info", None)
    if isinstance(own, MethodInfo):
        return own
    name = str(getattr(method, "name", type(method).__name__))
    return MethodInfo(name, "", name)
