"""All that is found out about one cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa

import hylift as hl
from experiments.groundwater.data import Wells
from experiments.groundwater.filters import fit
from experiments.groundwater.filters.predictions import Measurements, Predictions
from experiments.groundwater.filters.tuning import Shrinkage
from experiments.groundwater.model import FloatArray, IntArray, Parameters, ground
from hylift.graph import Conditioned
from hylift.proper.gaussian import centred

ALONE_SHARED, RELATIONAL_SHARED = "alone, shared parameters", "relational, shared parameters"
ALONE_OWN, RELATIONAL_OWN = "alone, own parameters", "relational, own parameters"
PAIRS = ((ALONE_SHARED, RELATIONAL_SHARED), (ALONE_OWN, RELATIONAL_OWN))
"""The two of a pair differ in whether wells tell something about each other."""
METHODS = tuple(method for pair in PAIRS for method in pair)


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Means and standard deviations along the months, or the months of a year."""

    mean: FloatArray
    sd: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What is known of a well in every month, beside what was measured.

    Levels are with the trend and the season, and without the error of a measurement.
    """

    well: int
    cluster: int
    levels: FloatArray  # (month,): NaN where nothing was measured
    filtered: Band
    """Given all measurements up to each month."""
    smoothed: Band
    """Given all measurements."""


@dataclass(frozen=True, slots=True, eq=False)
class Lifted:
    """How many classes exact lifting finds where wells share parameters."""

    num_hidden: int
    num_classes: int
    num_centred: int
    """Without the values of measurements: where something was measured is all that tells wells
    apart, as it does for their variances."""


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    number: int
    wells: IntArray  # (well of the cluster,)
    measurements: Measurements
    parameters: dict[str, Parameters]
    """By relational method."""
    held_out: dict[str, Predictions]
    """By method."""
    trend: Band  # (month,)
    season: Band  # (month of the year,)
    shown: tuple[Shown, ...]
    """As trend and season, with parameters of wells' own."""
    lifted: Lifted
    difference: float
    """The largest between the library's filter and the filter that parameters were fitted with, as
    a part of the largest number of its kind."""
    exact_difference: float
    """Between the log Z of the filter and of exact inference, as a part of it."""
    seconds: dict[str, float]
    """Of the processor, in the thread that did the work, by what was done."""


def study(wells: Wells, number: int, shown: IntArray, shrinkage: Shrinkage) -> Cluster:
    """A cluster with fitted parameters, filtered and smoothed; shown: wells to be drawn."""
    members = wells.of_cluster(number)
    levels = wells.levels[members]
    here = np.flatnonzero(np.isin(members, shown))
    measurements = Measurements.of(levels)
    clock = _Clock()
    predictions, parameters = _fitted(measurements, shrinkage, clock)
    shared = _Answer.of(levels, measurements, parameters[RELATIONAL_SHARED], None, clock)
    own = _Answer.of(levels, measurements, parameters[RELATIONAL_OWN], here, clock)
    predictions |= {RELATIONAL_SHARED: shared.predictions, RELATIONAL_OWN: own.predictions}
    lifted = _lifted(shared)
    clock.lap("lifting")
    bands = own.readings(parameters[RELATIONAL_OWN].r[here])
    return Cluster(
        number,
        members,
        measurements,
        parameters,
        {method: predictions[method].held_out() for method in METHODS},
        own.smoothed(_ids(own.graph, "trend")),
        own.smoothed(_ids(own.graph, "season")),
        tuple(
            Shown(int(members[place]), number, levels[place], *pair)
            for place, pair in zip(here, bands, strict=True)
        ),
        lifted,
        max(shared.difference, own.difference),
        max(shared.exact_difference, own.exact_difference),
        clock.laps,
    )


def _fitted(
    measurements: Measurements, shrinkage: Shrinkage, clock: _Clock
) -> tuple[dict[str, Predictions], dict[str, Parameters]]:
    """Predictions of wells on their own, and parameters of relational methods."""
    training = measurements.take(~measurements.is_held_out)
    shared = fit.fit_shared(training)
    own = shrinkage.fit(training, shared)
    clock.lap("fitting wells alone")
    equal, common = fit.fit_together(training, shared)
    wells = np.tile(equal, (measurements.num_wells, 1))
    own_common = fit.fit_common(training, own, common)
    clock.lap("fitting clusters")
    return (
        {ALONE_SHARED: fit.alone(measurements, shared), ALONE_OWN: fit.alone(measurements, own)},
        {
            RELATIONAL_SHARED: fit.parameters(wells, common),
            RELATIONAL_OWN: fit.parameters(own, own_common),
        },
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """What the library says of a cluster."""

    graph: hl.FactorGraph
    filtered: hl.Filtered
    posterior: hl.Posterior
    predictions: Predictions
    difference: float
    exact_difference: float

    @classmethod
    def of(
        cls,
        levels: FloatArray,
        measurements: Measurements,
        parameters: Parameters,
        shown: IntArray | None,
        clock: _Clock,
    ) -> _Answer:
        graph = ground(levels, parameters, shown)
        clock.lap("grounding")
        filtered = hl.kalman_filter(graph, "month")
        clock.lap("filtering")
        posterior = hl.infer(graph, hl.Exact())
        clock.lap("smoothing")
        predictions = Predictions(
            measurements, filtered.measured_mean, filtered.measured_var, filtered.log_likelihood
        )
        found, exact = float(filtered.log_partition[-1]), posterior.log_partition.value
        return cls(
            graph,
            filtered,
            posterior,
            predictions,
            predictions.difference(fit.together(measurements, parameters)),
            abs(exact - found) / max(abs(exact), 1.0),
        )

    def smoothed(self, ids: IntArray) -> Band:
        table = self.posterior.marginals_of(ids)
        return Band(table["mean"].to_numpy(), table["std"].to_numpy())

    def readings(self, error: FloatArray) -> list[tuple[Band, Band]]:
        """Of each shown well, its level: filtered, and smoothed; error: (shown well,), r."""
        found = []
        if len(error):
            filtered = self.filtered
            each = _ids(self.graph, "reading").reshape(len(error), -1)
            for ids, r in zip(each, error, strict=True):
                place = np.searchsorted(filtered.ids, ids)
                now = Band(filtered.mean[place], np.sqrt(filtered.var[place]))
                found.append((_level(now, r), _level(self.smoothed(ids), r)))
        return found


def _level(reading: Band, r: float) -> Band:
    """What is left without the error of a reading, which nothing else depends on."""
    return Band(reading.mean, np.sqrt(np.maximum(reading.sd**2 - r, 0.0)))


def _lifted(answer: _Answer) -> Lifted:
    rest = Conditioned.of(answer.graph)
    means = answer.posterior.marginals_of(rest.hidden)["mean"].to_numpy()
    middle = hl.lift(centred(rest.graph, means)).graph.num_variables
    plain = hl.lift(answer.graph).graph
    return Lifted(len(rest.hidden), plain.num_variables, middle)


def _ids(graph: hl.FactorGraph, predicate: str) -> IntArray:
    """Of all its atoms, in the order of their arguments."""
    ids, atoms = graph.variables.names.predicate(predicate)
    arguments = [column.cast(pa.int64()).to_numpy() for column in atoms.argument_columns().values()]
    return ids[np.lexsort(arguments[::-1])]


@final
class _Clock:
    """Takes the time of a thread's work."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.thread_time()

    def lap(self, what: str) -> None:
        now = time.thread_time()
        self.laps[what] = self.laps.get(what, 0.0) + now - self._last
        self._last = now
