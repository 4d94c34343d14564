"""The methods and their capabilities: the list that commands, races, plots and warm-up read.

A new method is a module and an entry in `METHODS`. Nothing heavy is imported here, so that
`hylift --help` is fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

Task = Literal["marginals", "logz", "map"]
Lift = Literal["exact", "coarse-to-fine", "none"]
Rewrite = Literal["hard clusters", "chains", "common means", "counts", "common fields", "parts"]
"""Ways to write a graph as an easier one of the same distribution, before inference."""


@dataclass(frozen=True, slots=True)
class Option:
    """A setting that the command line offers for some methods."""

    name: str
    type: type
    help: str
    metavar: str = "N"
    short: str | None = None
    """A letter with a dash."""
    choices: tuple[str, ...] = ()
    """Allowed values; empty where the method itself checks them."""
    is_field: bool = True
    """It is a field of the methods that have it."""


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """The names and capabilities of a method.

    The defaults hold for a user's own method without an attribute `info`.
    """

    key: str
    """Its name on the command line and in races."""
    label: str
    """Its name in tables and plots, without settings."""
    home: str = ""
    """Its class, as `module:name`, below `hylift.inference`."""
    answers: tuple[Task, ...] = ("marginals", "logz", "map")
    lift: Lift = "coarse-to-fine"
    """The strongest lifting that it supports."""
    rewrites: tuple[Rewrite, ...] = ("hard clusters",)
    """The rewrites of the graph that help it."""
    is_centred: bool = False
    """Its reals are measured from where few digits are lost."""
    can_start: bool = False
    """It can start from an earlier posterior."""
    has_steps: bool = False
    """It takes steps with an objective, which can be drawn."""
    is_timed: bool = False
    """It returns the best so far when time is up, and writes checkpoints."""
    trust: Literal["exact", "draws"] | None = None
    """The reason for a race to measure others by it: it is exact, or its draws have converged."""
    proves_impossible: bool = True
    """Evidence that it calls impossible is impossible."""
    is_checked: bool = False
    """A quick run from flat starts checks its marginals."""
    races_coarse: bool = False
    """A race runs it a second time, with coarse-to-fine lifting."""
    options: tuple[Option, ...] = ()
    """Settings that the command line offers."""
    quick: tuple[tuple[str, int], ...] = ()
    """Settings with which it takes next to no time, to warm it up."""

    @property
    def module(self) -> str:
        return self.home.partition(":")[0]

    @property
    def class_name(self) -> str:
        return self.home.partition(":")[2]


COMPONENTS = Option(
    "components", int, r"Products in the mixture of bvi or npvi.  \[default: 3]", "K", short="-k"
)
RESTARTS = Option(
    "restarts",
    int,
    "Random starts of a variational method or of maxwalksat, of which the best is kept.  "
    r"\[default: 5, of npvi 10, of maxwalksat 3]",
)
MAX_STEPS = Option(
    "max_steps", int, r"Maximum number of steps.  \[default: 1000, of mini-buckets 100]"
)
MAX_ENTRIES = Option(
    "max_entries", int, r"Entries of the tables of mini-buckets.  \[default: 1048576]"
)
OPTIMISER = Option(
    "optimiser",
    str,
    r"natural (natural gradients, then L-BFGS) or adam.  \[default: natural]",
    "NAME",
    choices=("natural", "adam"),
)
LEARNING_RATE = Option(
    "learning_rate", float, r"Step length of adam.  \[default: 0.2]", "RATE", is_field=False
)
REALS = Option(
    "reals",
    str,
    "Components of bounded reals: gaussian, beta, or auto, which is beta where bounds matter.  "
    r"\[default: auto]",
    "FAMILY",
    choices=("auto", "gaussian", "beta"),
)
BOUND = Option(
    "bound",
    str,
    "Bound on the entropy that npvi maximises: jensen (as in its paper) or tracey (tighter).  "
    r"\[default: jensen]",
    "NAME",
    choices=("jensen", "tracey"),
)
JOINT = Option("joint", bool, "Give each component of npvi one joint Gaussian for all reals.", "")
DAMPING = Option(
    "damping",
    float,
    "Share of its old value that a message of bp, gabp or epbp, or a site of ep, keeps; 0.5 often "
    r"helps where they oscillate.  \[default: 0 or 0.5, by the graph]",
    "SHARE",
)
SCHEDULE = Option(
    "schedule",
    str,
    "Messages that bp sends at a step: flooding (all) or residual (those that change most).  "
    r"\[default: flooding]",
    "NAME",
)
PARTICLES = Option(
    "particles",
    int,
    r"Points per real of epbp, or particles of each group of smc.  \[default: 50 or 64]",
)
CHAINS = Option("chains", int, r"Chains of gibbs, side by side.  \[default: 4]")
DRAWS = Option("draws", int, r"Draws that gibbs keeps of each chain.  \[default: 1000]")
WARM_UP = Option(
    "warm_up", int, r"Draws of each chain of gibbs before those that it keeps.  \[default: 500]"
)
GROUPS = Option("groups", int, r"Independent groups of particles of smc.  \[default: 8]")
SWEEPS = Option("sweeps", int, r"Sweeps of smc over which it averages at the end.  \[default: 10]")
MERGE_FACTORS = Option(
    "merge_factors", bool, "Merge factors of bvi, bp, epbp or ep that share their variables.", ""
)
FLIPS = Option("flips", int, r"Moves of maxwalksat from each start.  \[default: 1000000]")

# Options of every method with a capability.
LIFT = Option(
    "lift",
    str,
    "Solve look-alikes once: exact, coarse-to-fine (variational methods, for real evidence that "
    r"breaks the symmetry) or none.  \[default: exact]",
    "LIFT",
    choices=get_args(Lift),
    is_field=False,
)
REWRITE = Option(
    "rewrite",
    str,
    "Rewrites of the graph before inference, separated by commas: "
    rf"{', '.join(get_args(Rewrite))}; or none.  \[default: those that help the method]",
    "NAMES",
    is_field=False,
)
SECONDS = Option(
    "seconds",
    float,
    "Time limit, after which a method returns its best answer.",
    "S",
    is_field=False,
)
CHECKPOINT = Option(
    "checkpoint",
    Path,
    "Store the run in this file from time to time, and resume from it if it exists.",
    "FILE",
    is_field=False,
)
START = Option(
    "start",
    Path,
    "A posterior of an earlier run to start from, as written by --save.",
    "FILE",
    is_field=False,
)

NO_EXACT = Option("no_exact", bool, "Never use exact inference.", "", is_field=False)
CHECK = Option(
    "check",
    bool,
    "Check the answer by runs that begin flat, as auto does, and correct it where it is off.",
    "",
    is_field=False,
)
NO_CHECK = Option(
    "no_check", bool, "Leave out all checks: faster, and unchecked.", "", is_field=False
)

STEPS: dict[str, Any] = {"has_steps": True, "is_timed": True, "is_checked": True}
VARIATIONAL: dict[str, Any] = {"can_start": True, **STEPS}
MESSAGES: dict[str, Any] = {"lift": "exact", **STEPS}
FITTED = (RESTARTS, MAX_STEPS, OPTIMISER, LEARNING_RATE, REALS)
FEW_STEPS = (("restarts", 2), ("max_steps", 3))
COUNTED: tuple[Rewrite, ...] = ("hard clusters", "chains", "counts")
"""Rewrites after which discrete look-alikes that all meet each other make no loops."""

METHODS = (
    MethodInfo(
        "exact",
        "exact",
        "exact:Exact",
        lift="none",
        rewrites=("chains", "common means", "counts", "common fields", "parts"),
        is_centred=True,
        trust="exact",
    ),
    MethodInfo("mean-field", "mean field", "variational:MeanField", options=FITTED, **VARIATIONAL),
    MethodInfo(
        "bvi",
        "BVI",
        "variational:BVI",
        races_coarse=True,
        options=(COMPONENTS, *FITTED, MERGE_FACTORS),
        quick=FEW_STEPS,
        **VARIATIONAL,
    ),
    MethodInfo(
        "npvi",
        "NPVI",
        "variational:NPVI",
        options=(COMPONENTS, *FITTED, BOUND, JOINT),
        quick=FEW_STEPS,
        **VARIATIONAL,
    ),
    MethodInfo(
        "bp",
        "BP",
        "message:BP",
        rewrites=COUNTED,
        options=(MAX_STEPS, DAMPING, SCHEDULE, MERGE_FACTORS),
        **MESSAGES,
    ),
    MethodInfo(
        "gabp",
        "GaBP",
        "message:GaBP",
        options=(MAX_STEPS, DAMPING),
        **MESSAGES | {"is_checked": False},
    ),
    MethodInfo(
        "epbp",
        "EPBP",
        "message:EPBP",
        rewrites=COUNTED,
        options=(MAX_STEPS, DAMPING, PARTICLES, MERGE_FACTORS),
        quick=(("particles", 8), ("max_steps", 4)),
        **MESSAGES,
    ),
    MethodInfo(
        "ep",
        "EP",
        "expectation:EP",
        rewrites=("hard clusters", "common means", "counts", "common fields"),
        options=(MAX_STEPS, DAMPING, MERGE_FACTORS),
        **MESSAGES,
    ),
    MethodInfo(
        "gibbs",
        "Gibbs",
        "sampling:Gibbs",
        answers=("marginals", "map"),
        lift="none",
        rewrites=("hard clusters", "common means", "counts"),
        is_timed=True,
        trust="draws",
        proves_impossible=False,
        options=(CHAINS, DRAWS, WARM_UP),
        quick=(("draws", 10), ("warm_up", 10)),
    ),
    MethodInfo(
        "smc",
        "SMC",
        "smc:SMC",
        lift="none",
        rewrites=("hard clusters", "common means", "counts", "common fields"),
        can_start=True,
        is_timed=True,
        proves_impossible=False,
        options=(GROUPS, PARTICLES, SWEEPS),
        quick=(("groups", 2), ("particles", 4), ("sweeps", 2)),
    ),
    MethodInfo(
        "maxwalksat",
        "MaxWalkSAT",
        "search.maxwalksat:MaxWalkSAT",
        answers=("map",),
        lift="none",
        rewrites=(),
        can_start=True,
        has_steps=True,
        is_timed=True,
        options=(RESTARTS, FLIPS),
        quick=(("restarts", 1), ("flips", 100)),
    ),
    MethodInfo(
        "mini-buckets",
        "mini-buckets",
        "bounds:MiniBuckets",
        answers=("logz",),
        lift="none",
        rewrites=("chains",),
        has_steps=True,
        is_timed=True,
        options=(MAX_STEPS, MAX_ENTRIES),
        quick=(("max_steps", 2),),
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
    REWRITE: lambda info: True,
    SECONDS: lambda info: info.is_timed,
    CHECKPOINT: lambda info: info.is_timed,
    START: lambda info: info.can_start,
    NO_EXACT: lambda info: False,  # of the default choice only
    CHECK: lambda info: "marginals" in info.answers,
    NO_CHECK: lambda info: "marginals" in info.answers,
}
"""Options of every method with a capability."""

OPTIONS: tuple[Option, ...] = tuple(
    dict.fromkeys([*ABOUT_RUNS, *(option for info in METHODS for option in info.options)])
)


def fitting_methods(option: Option) -> list[str]:
    """The keys of the methods that have an option."""
    fits = ABOUT_RUNS.get(option)
    return [info.key for info in METHODS if (fits(info) if fits else option in info.options)]


def info_of(method: object) -> MethodInfo:
    """The capabilities of a method: its entry in `METHODS`, or its own attribute `info`."""
    own = getattr(method, "info", None)
    if isinstance(own, MethodInfo):
        return own
    kind = type(method)
    for info in METHODS:
        if kind.__name__ == info.class_name and kind.__module__.startswith("hylift.inference."):
            return info
    name = str(getattr(method, "name", kind.__name__))
    return MethodInfo(name, name)
