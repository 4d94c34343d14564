"""Methods and their settings as the command line names them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

from hylift.cli.options import METHODS, OPTIMISERS
from hylift.errors import UnsupportedError, did_you_mean
from hylift.inference import (
    BVI,
    NPVI,
    Adam,
    Exact,
    Lift,
    MeanField,
    Method,
    NaturalNewton,
    Task,
)
from hylift.inference.by_name import method_by_name
from hylift.inference.variational.problem.families import Reals
from hylift.posterior import Posterior
from hylift.words import listed

MIXTURES = ("bvi", "npvi")
VARIATIONAL = (*MIXTURES, "mean-field")
MESSAGES = ("bp", "gabp", "epbp")
STEPPING = (*VARIATIONAL, *MESSAGES)
TIMED = (*STEPPING, "gibbs", "maxwalksat")

FITS: dict[str, tuple[str, ...]] = {
    "components": MIXTURES,
    "lift": ("auto", *STEPPING),
    "seconds": ("auto", *TIMED),
    "checkpoint": ("auto", *TIMED),
    "restarts": (*VARIATIONAL, "maxwalksat"),
    "max_steps": STEPPING,
    "optimiser": VARIATIONAL,
    "learning_rate": VARIATIONAL,
    "reals": VARIATIONAL,
    "start": VARIATIONAL,
    "damping": MESSAGES,
    "schedule": ("bp",),
    "particles": ("epbp",),
    "chains": ("gibbs",),
    "draws": ("gibbs",),
    "warm_up": ("gibbs",),
    "merge_factors": ("bvi", "bp", "epbp"),
    "flips": ("maxwalksat",),
    "convergence": (*STEPPING, "maxwalksat"),  # where the picture goes is among the files
}
"""Methods that each option is for."""

ANSWERS: dict[str, tuple[Task, ...]] = {"gibbs": ("marginals", "map"), "maxwalksat": ("map",)}
"""Tasks of the methods that have no answer to some."""

PLAIN = (
    *("damping", "schedule", "max_steps", "particles", "merge_factors"),
    *("chains", "draws", "warm_up", "flips", "restarts"),
)
"""Options that are fields of the methods they are for."""


@dataclass(frozen=True, slots=True)
class MethodOptions:
    """What the options of `hylift infer` say about how to answer; None where they say nothing."""

    method: str = "auto"
    components: int | None = None
    lift: str | None = None
    seconds: float | None = None
    checkpoint: Path | None = None
    restarts: int | None = None
    max_steps: int | None = None
    optimiser: str | None = None
    learning_rate: float | None = None
    reals: str | None = None
    start: Path | None = None
    damping: float | None = None
    schedule: str | None = None
    particles: int | None = None
    chains: int | None = None
    draws: int | None = None
    warm_up: int | None = None
    merge_factors: bool | None = None
    flips: int | None = None

    def __post_init__(self) -> None:
        """Finds all that is wrong with the options, before any work."""
        check_word("method", self.method, METHODS)
        for option in FITS:
            if getattr(self, option, None) is not None:
                self.check_fits(option)
        if self.lift is not None:
            check_word("lift", self.lift, get_args(Lift))
        if self.reals is not None:
            check_word("family of reals", self.reals, get_args(Reals))
        if self.optimiser is not None:
            check_word("optimiser", self.optimiser, OPTIMISERS)
        if self.learning_rate is not None and self.optimiser != "adam":
            raise UnsupportedError("--learning-rate is for --optimiser adam")
        if self.seconds is not None:
            check_seconds(self.seconds)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> MethodOptions:
        """From all options of a command by name, of which these are some."""
        return cls(**{one.name: options[one.name] for one in fields(cls)})

    def check_fits(self, option: str) -> None:
        """Raises if an option is not for the method."""
        fitting = FITS[option]
        if self.method not in fitting:
            raise UnsupportedError(
                f"--{option.replace('_', '-')} is for --method "
                f"{listed(fitting).replace(' and ', ' or ')}, not for {self.method}"
            )

    @property
    def chosen_lift(self) -> Lift:
        return cast(Lift, self.lift or "exact")

    def chosen(self, start: Posterior | None) -> Method | None:
        """The method with its settings; None leaves the choice to `infer`.

        A mixture has as many components as the one it starts from, if nothing else is said.
        """
        if self.method == "auto":
            return None
        kind = method_by_name(self.method)
        if not isinstance(kind, BVI | NPVI | MeanField):
            return kind if isinstance(kind, Exact) else self._plain(kind)
        method = replace(
            kind,
            optimiser=self._chosen_optimiser(),
            restarts=kind.restarts if self.restarts is None else self.restarts,
            max_steps=kind.max_steps if self.max_steps is None else self.max_steps,
            reals=cast(Reals, self.reals or "auto"),
        )
        if isinstance(method, BVI) and self.merge_factors:
            method = replace(method, merge_factors=True)
        components = self.components
        if components is None and start is not None and start.mixture is not None:
            components = start.mixture.num_components
        if components is None or isinstance(method, MeanField):
            return method
        return replace(method, components=components)

    def tasks(self, named: list[Task], default: Collection[Task]) -> list[Task]:
        """The named tasks, or those of the default ones that the method answers."""
        answers = ANSWERS.get(self.method)
        if answers is None:
            return named or list(default)
        for task in named:
            if task not in answers:
                raise UnsupportedError(
                    f"--method {self.method} has no answer to the task '{task}', only to "
                    f"{listed(answers)}"
                )
        return named or [task for task in default if task in answers] or [answers[0]]

    def _plain(self, method: Method) -> Method:
        """The method with the settings that were given."""
        given = {name: getattr(self, name) for name in PLAIN}
        given = {name: value for name, value in given.items() if value is not None}
        return cast(Method, replace(cast(Any, method), **given))

    def _chosen_optimiser(self) -> Adam | NaturalNewton:
        if self.optimiser != "adam":
            return NaturalNewton()
        return Adam() if self.learning_rate is None else Adam(self.learning_rate)


def check_seconds(seconds: float) -> None:
    """Raises unless a time is one that work can take."""
    if not seconds > 0:
        raise UnsupportedError(f"--seconds must be a positive number, not {seconds:g}")


def check_word(what: str, word: str, allowed: Collection[str]) -> None:
    """Raises unless a word is one of those that are allowed."""
    if word not in allowed:
        raise UnsupportedError(
            f"there is no {what} '{word}': choose among {', '.join(allowed)}."
            f"{did_you_mean(word.lower(), allowed)}"
        )
