"""Methods and their settings as the command line names them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from hylift.errors import UnsupportedError, check_word
from hylift.inference import Adam, Lift, Method, NaturalNewton, Task
from hylift.inference.capabilities import (
    CHECK,
    CHECKPOINT,
    LIFT,
    METHOD_BY_KEY,
    METHODS,
    NO_CHECK,
    NO_EXACT,
    OPTIONS,
    REWRITE,
    SECONDS,
    fitting_methods,
)
from hylift.inference.method import method_by_key
from hylift.inference.settings import checked_seconds
from hylift.posterior import Posterior
from hylift.words import either, listed

FOR_AUTO = (LIFT, REWRITE, SECONDS, CHECKPOINT, NO_EXACT, CHECK, NO_CHECK)
"""Options that also the default choice of a method takes."""


@dataclass(frozen=True, slots=True)
class MethodOptions:
    """The method and its settings, as the options of `hylift infer` give them."""

    method: str = "auto"
    given: Mapping[str, Any] = field(default_factory=dict)
    """By name; without those that were not given."""

    def __post_init__(self) -> None:
        """Raise if the options are wrong, before any work."""
        check_word("method", self.method, ("auto", *METHOD_BY_KEY))
        for option in OPTIONS:
            if option.name not in self.given:
                continue
            is_auto = self.method == "auto" and option in FOR_AUTO
            fitting = fitting_methods(option)
            if not is_auto:
                self._check_fits(option.name, fitting, option in FOR_AUTO)
            if option.choices:
                what = "family of reals" if option.name == "reals" else option.name
                check_word(what, self.given[option.name], option.choices)
        if "learning_rate" in self.given and self.given.get("optimiser") != "adam":
            raise UnsupportedError("--learning-rate is for --optimiser adam")
        if {"check", "no_check"} <= set(self.given):
            raise UnsupportedError("--check and --no-check exclude each other")
        if self.seconds is not None:
            checked_seconds(self.seconds)

    @classmethod
    def of(cls, method: str, options: Mapping[str, Any]) -> MethodOptions:
        return cls(method, {name: value for name, value in options.items() if value is not None})

    def check_converges(self) -> None:
        """Raise if the method has no objective to draw."""
        self._check_fits("convergence", [info.key for info in METHODS if info.has_steps], False)

    def _check_fits(self, option: str, fitting: Sequence[str], is_for_auto: bool) -> None:
        if self.method not in fitting:
            names = ["auto", *fitting] if is_for_auto else fitting
            raise UnsupportedError(
                f"--{option.replace('_', '-')} is for --method "
                f"{either(names)}, not for {self.method}"
            )

    @property
    def lift(self) -> Lift:
        return cast(Lift, self.given.get("lift", "exact"))

    @property
    def rewrite(self) -> list[str] | None:
        """The rewrites that are named; None where nothing is said."""
        words = self.given.get("rewrite")
        if words is None:
            return None
        return [] if words.strip() == "none" else [word.strip() for word in words.split(",")]

    @property
    def seconds(self) -> float | None:
        return self.given.get("seconds")

    @property
    def checkpoint(self) -> Path | None:
        return self.given.get("checkpoint")

    @property
    def exact(self) -> bool:
        """False if exact inference is ruled out."""
        return not self.given.get("no_exact", False)

    @property
    def check(self) -> bool | None:
        """True or False where it is said that answers are checked or not."""
        if self.given.get("no_check", False):
            return False
        return True if self.given.get("check", False) else None

    @property
    def start(self) -> Path | None:
        return self.given.get("start")

    def chosen(self, start: Posterior | None) -> Method | None:
        """The method with its settings; None leaves the choice to `infer`.

        A mixture has as many components as the one it starts from, if nothing else is said.
        """
        if self.method == "auto":
            return None
        fields = [one.name for one in METHOD_BY_KEY[self.method].options if one.is_field]
        settings = {name: self.given[name] for name in fields if name in self.given}
        if "optimiser" in settings:
            settings["optimiser"] = self._optimiser()
        if "components" in fields and start is not None and start.mixture is not None:
            settings.setdefault("components", start.mixture.num_components)
        return method_by_key(self.method, **settings)

    def tasks(self, named: list[Task], default: Collection[Task]) -> list[Task]:
        """The named tasks, or those of the default ones that the method answers."""
        if self.method == "auto":
            return named or list(default)
        answers = METHOD_BY_KEY[self.method].answers
        for task in named:
            if task not in answers:
                raise UnsupportedError(
                    f"--method {self.method} does not answer the task '{task}', only "
                    f"{listed(answers)}"
                )
        return named or [task for task in default if task in answers] or [answers[0]]

    def _optimiser(self) -> Adam | NaturalNewton:
        if self.given["optimiser"] != "adam":
            return NaturalNewton()
        return Adam(self.given["learning_rate"]) if "learning_rate" in self.given else Adam()
