"""Random small graphs, methods and settings, judged against exact inference or the oracle."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np

import hylift as hl
from benchmarks.families.practice import PRACTICE, Written, written
from benchmarks.families.score import Moments
from hylift.errors import ImpossibleEvidenceError
from hylift.inference.capabilities import METHOD_BY_KEY, METHODS, MethodInfo, Rewrite
from hylift.inference.method import method_by_key
from tests import oracle
from tests.random_models import graphs
from torture.case import Problem
from torture.graphs import (
    ANY,
    QUADRATIC,
    SOURCES,
    FloatArray,
    Rng,
    described,
    drawn,
    rescaled,
    rounded,
    smaller_graphs,
    some_graph,
    units,
)
from torture.judge import EVERYTHING, Truth, judged

Settings = dict[str, Any]

VALUES: dict[str, tuple[Any, ...]] = {
    "components": (1, 2, 3, 5),
    "restarts": (1, 2, 5),
    "max_steps": (1, 7, 300, 1000),
    "max_entries": (2, 16, 1 << 20),
    "optimiser": (hl.NaturalNewton(), hl.NaturalGradient(), hl.Adam(), hl.Adam(0.01)),
    "damping": (None, 0.0, 0.3, 0.9),
    "schedule": ("flooding", "residual"),
    "particles": (8, 20, 64),
    "chains": (2, 4),
    "draws": (10, 200, 1000),
    "warm_up": (10, 100, 500),
    "groups": (2, 4, 8),
    "sweeps": (1, 3, 10),
    "flips": (100, 10_000),
}
"""Values of settings beside those that an option of the command line names."""
RUNS: dict[str, tuple[Any, ...]] = {
    "lift": ("exact", "exact", "none", "coarse-to-fine"),
    "rewrite": (None, None, False, *get_args(Rewrite)),
    "check": (None, False, True),
    "seconds": (None, None, 0.2, 3.0),
}
"""Values of arguments of `infer`."""


@dataclass(frozen=True, slots=True)
class Run:
    """A method, by name or the default, with settings and arguments."""

    key: str | None
    settings: Settings = field(default_factory=dict)
    arguments: Settings = field(default_factory=dict)

    def infer(self, graph: hl.FactorGraph, **more: Any) -> hl.Posterior:
        method = None if self.key is None else method_by_key(self.key, **self.settings)
        return hl.infer(graph, method, **{**self.arguments, **more})

    def simpler(self) -> Iterator[Run]:
        """Runs with one setting or argument less."""
        for name in self.settings:
            yield replace(self, settings={n: v for n, v in self.settings.items() if n != name})
        for name in self.arguments:
            yield replace(self, arguments={n: v for n, v in self.arguments.items() if n != name})

    def __str__(self) -> str:
        return f"{self.key or 'default'} {self.settings} {self.arguments}"


def some_run(rng: Rng, keys: tuple[str, ...]) -> Run:
    """A method with random settings and arguments."""
    info = METHOD_BY_KEY[keys[int(rng.integers(len(keys)))]]
    arguments = {name: pick(rng, values) for name, values in RUNS.items() if rng.random() < 0.4}
    tasks = [task for task in info.answers if rng.random() < 0.7] or list(info.answers)
    return Run(info.key, some_settings(rng, info), {
        **arguments, "tasks": tuple(tasks), "seed": int(rng.integers(100)),
    })  # fmt: skip


def some_settings(rng: Rng, info: MethodInfo) -> Settings:
    settings: Settings = {}
    for option in info.options:
        if option.is_field and rng.random() < 0.4:
            values = VALUES.get(option.name, option.choices or (False, True))
            settings[option.name] = pick(rng, values)
    return settings


def pick(rng: Rng, values: tuple[Any, ...]) -> Any:
    return values[int(rng.integers(len(values)))]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The answer of a method, beside the truth."""

    graph: hl.FactorGraph
    run: Run
    offset: FloatArray | None = None  # (variable,)
    scale: FloatArray | None = None  # (variable,)

    @property
    def asked(self) -> hl.FactorGraph:
        """The graph in other units."""
        if self.offset is None or self.scale is None:
            return self.graph
        return rescaled(self.graph, self.offset, self.scale)

    def problem(self) -> Problem | None:
        if self.offset is None or self.scale is None:
            truth = Truth.of(self.graph)
        elif truth := Truth.of(rounded(self.graph, self.offset, self.scale)):
            truth = truth.rescaled(self.graph, self.offset, self.scale)
        try:
            return judged(self.run.infer(self.asked), truth)
        except ImpossibleEvidenceError as error:
            named = self.run.key and METHOD_BY_KEY[self.run.key]
            is_claim = not named or named.proves_impossible
            is_known = truth is not None and not truth.is_impossible
            if not is_claim or not (is_known or is_possible(self.asked)):
                return None
            return Problem("wrong and unflagged", f"called impossible: {error}", "impossible")

    def smaller(self) -> Iterator[Answer]:
        if self.offset is None or self.scale is None:
            for graph in smaller_graphs(self.graph):
                yield replace(self, graph=graph)
        else:
            yield replace(self, offset=None, scale=None)
            if self.offset.any():
                yield replace(self, offset=np.zeros_like(self.offset))
            if (self.scale != 1).any():
                yield replace(self, scale=np.ones_like(self.scale))
            yield from self._smaller_rescaled(self.offset, self.scale)
        for run in self.run.simpler():
            yield replace(self, run=run)

    def _smaller_rescaled(self, offset: FloatArray, scale: FloatArray) -> Iterator[Answer]:
        """Smaller graphs in the same units, which are found by name."""
        names = self.graph.variables.names.render().to_pylist()
        place = dict(zip(names, itertools.count(), strict=False))
        for graph in smaller_graphs(self.graph):
            kept = [place[name] for name in graph.variables.names.render().to_pylist()]
            yield replace(self, graph=graph, offset=offset[kept], scale=scale[kept])

    def __str__(self) -> str:
        units = "" if self.offset is None else f"\noffset {self.offset}, scale {self.scale}"
        return f"{self.run}{units}\n{described(self.graph)}"


def is_possible(graph: hl.FactorGraph) -> bool:
    """True if some of a few random assignments has a finite log-density."""
    rng, e, variables = np.random.default_rng(0), graph.evidence, graph.variables
    for _ in range(20):
        values = np.where(
            variables.num_states > 0,
            np.floor(rng.random(len(variables)) * variables.num_states),
            np.clip(rng.normal(size=len(variables)), variables.lower, variables.upper),
        )
        values[e.variable] = e.value
        with np.errstate(all="ignore"):
            if np.isfinite(graph.log_density(values)):
                return True
    return False


ALL = tuple(info.key for info in METHODS)
BOUNDING = ("mean-field", "npvi", "bvi", "ep", "mini-buckets", "bp", "exact")


def answers(seed: int) -> Answer:
    """Any method with any settings."""
    rng = np.random.default_rng(seed)
    return Answer(some_graph(rng, SOURCES), some_run(rng, ALL))


def default(seed: int) -> Answer:
    """The default choice, with exact inference and without."""
    rng = np.random.default_rng(seed)
    arguments = {"exact": bool(rng.random() < 0.3), "seconds": pick(rng, (None, 1.0, 5.0))}
    run = Run(None, {}, {**arguments, "seed": int(rng.integers(100)), "tasks": EVERYTHING})
    return Answer(some_graph(rng, SOURCES), run)


def scales(seed: int) -> Answer:
    """Reals in other units: far from 0, very large or very small."""
    rng = np.random.default_rng(seed)
    graph = some_graph(rng, QUADRATIC)
    return Answer(graph, some_run(rng, ALL), *units(rng, graph))


def bounds(seed: int) -> Answer:
    """Certified bounds on log Z, with offsets, scales and hard rules."""
    rng = np.random.default_rng(seed)
    graph, run = some_graph(rng, QUADRATIC), some_run(rng, BOUNDING)
    run = replace(run, arguments={**run.arguments, "tasks": "logz"})
    return Answer(graph, run, *(units(rng, graph) if rng.random() < 0.5 else (None, None)))


EXTREMES = (
    "0.0",
    "1e-300",
    "1e-30",
    "1e-12",
    "1e-6",
    "1e6",
    "1e12",
    "1.7e9",
    "1e30",
    "1e99",
    "1e300",
)


@dataclass(frozen=True, slots=True, eq=False)
class Extreme:
    """A written model some of whose numbers are extreme."""

    model: Written
    numbers: dict[int, str]
    """By their places among all that are written with a point."""
    run: Run

    @property
    def written(self) -> Written:
        place = itertools.count()
        rules = NUMBER.sub(lambda m: self.numbers.get(next(place), m[0]), self.model.rules)
        return replace(self.model, rules=rules)

    def problem(self) -> Problem | None:
        return Answer(self.written.graph(), self.run).problem()

    def smaller(self) -> Iterator[Extreme]:
        for at in self.numbers if len(self.numbers) > 1 else ():
            yield replace(self, numbers={n: v for n, v in self.numbers.items() if n != at})
        for run in self.run.simpler():
            yield replace(self, run=run)

    def __str__(self) -> str:
        return f"{self.run}\n{self.written}"


NUMBER = re.compile(r"\d+\.\d+(e[-+]?\d+)?")


def numbers(seed: int) -> Extreme:
    """Extreme numbers in rules, by the default or any method."""
    rng = np.random.default_rng(seed)
    model = written(str(rng.choice(list(PRACTICE))), int(rng.integers(100, 10**6)))
    count = len(NUMBER.findall(model.rules))
    chosen = rng.choice(count, min(count, int(rng.integers(1, 4))), replace=False).tolist()
    run = some_run(rng, ALL) if rng.random() < 0.6 else Run(None, {}, {"tasks": EVERYTHING})
    run = replace(run, arguments={**run.arguments, "seconds": 3.0})
    return Extreme(model, {at: str(rng.choice(EXTREMES)) for at in chosen}, run)


@dataclass(frozen=True, slots=True, eq=False)
class Enumerated(Answer):
    """Exact inference beside slow enumeration."""

    def problem(self) -> Problem | None:
        graph = self.graph
        if np.count_nonzero(~graph.evidence.is_hard) or len(oracle.numerical_reals(graph)) > 2:
            return None
        truth = enumerated(graph)
        try:
            found = self.run.infer(graph, tasks=EVERYTHING)
        except ImpossibleEvidenceError:
            text = "called impossible"
            return None if truth.is_impossible else Problem("wrong and unflagged", text, text)
        return judged(found, truth)


def enumerated(graph: hl.FactorGraph) -> Truth:
    """The truth by the oracle."""
    with np.errstate(all="ignore"):
        known = oracle.solve(graph)
    if not np.isfinite(known.log_z):
        return Truth(None, is_impossible=True)
    names = graph.variables.names
    rows = sorted((names[v], v) for v in {*known.probs, *known.mean})
    discrete = [(n, p) for n, v in rows if v in known.probs for p in known.probs[v]]
    reals = [(n, known.mean[v], known.var[v] ** 0.5) for n, v in rows if v in known.mean]
    moments = Moments(
        np.array([p for _, p in discrete]),
        np.array([n for n, _ in discrete], dtype=object),
        *(np.array([row[i] for row in reals], dtype=float) for i in (1, 2)),
        np.array([row[0] for row in reals], dtype=object),
    )
    return Truth(moments, known.log_z, 1e-6 * max(1.0, abs(known.log_z)))


def exact(seed: int) -> Enumerated:
    rng = np.random.default_rng(seed)
    small = graphs(max_discrete=4, max_reals=3, max_bounded=1, soft=False)
    graph = drawn(small if rng.random() < 0.8 else ANY, rng)
    settings = {"rewrite": pick(rng, (None, False))} if rng.random() < 0.3 else {}
    return Enumerated(graph, Run(str(rng.choice(["exact", "bp", "gabp"])), {}, settings))
