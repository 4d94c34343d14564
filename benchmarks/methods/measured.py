"""A race of all methods on a lifted graph, and one on the ground graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import hylift as hl
from benchmarks.methods.models import Model
from hylift.inference import Method
from hylift.racing import Finish

LIFTED: tuple[Method, ...] = (
    hl.MeanField(), hl.BVI(), hl.NPVI(), hl.BP(), hl.GaBP(), hl.EPBP(),
)  # fmt: skip
"""Methods that solve look-alikes once."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a race on a model says of a method."""

    finish: Finish
    ground_seconds: float | None
    """On the ground graph; None of methods that look at every variable by itself anyway."""
    worst: float | None
    """Largest error of a mean in standard deviations, or of a probability."""
    width: float | None
    """Standard deviations beside the trusted ones, the median of all reals."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A model, and what all methods have made of it."""

    model: Model
    graph: hl.FactorGraph
    race: hl.Race
    results: dict[str, Result]


def measure(model: Model, methods: Sequence[Method] | None = None) -> Measured:
    """A model with all methods, or these, lifted and ground."""
    graph = model.graph()
    race = hl.race(graph, methods, seconds=model.seconds)
    lifted = {one.label for one in race if one.lift == "exact"}
    again = [method for method in LIFTED if method.name in lifted]
    ground = hl.race(graph, again, seconds=model.seconds, lift="none") if again else ()
    seconds = {one.label: one.seconds for one in ground}
    results = {one.label: _result(race, one, seconds.get(one.label)) for one in race}
    return Measured(model, graph, race, results)


def _result(race: hl.Race, finish: Finish, ground_seconds: float | None) -> Result:
    if finish.comparison is None or race.yardstick is None:
        return Result(finish, ground_seconds, None, None)
    trusted, found = race.best.posterior.marginals(), finish.posterior.marginals()
    sd, own_sd = (each["std"].to_numpy() for each in (trusted, found))
    is_real = ~np.isnan(sd)
    l1 = finish.comparison.l1
    # Of two states, Σ |p - q| counts what one has less twice.
    errors = np.where(is_real, l1 / np.where(is_real, sd, 1.0), l1 / 2)
    width = float(np.median(own_sd[is_real] / sd[is_real])) if is_real.any() else None
    return Result(finish, ground_seconds, float(errors.max(initial=0.0)), width)
