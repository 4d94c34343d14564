"""Random hybrid models of eight families, with a window for each real that holds all its mass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import hylift as hl

Vector = NDArray[np.float64]
Rng = np.random.Generator
Factor = tuple[tuple[int, ...], tuple[Vector, ...]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A model; the reals of its posterior lie from `low` to `high` (variable,)."""

    graph: hl.FactorGraph
    low: Vector
    high: Vector


@dataclass(slots=True)
class Sketch:
    """A graph while it is drawn: reals are in units of `unit` around `origin`."""

    unit: float
    origin: float
    domains: list[hl.Domain] = field(default_factory=list)
    factors: dict[tuple[int, ...], list[Factor]] = field(default_factory=dict)
    """By the numbers of states of their slots; those of one shape share a group."""
    reach: float = 12.0
    """All means and readings are within this distance of the origin, with ten deviations."""

    def discrete(self, num_states: int = 2) -> int:
        self.domains.append(hl.boolean if num_states == 2 else hl.categorical(num_states))
        return len(self.domains) - 1

    def real(self) -> int:
        self.domains.append(hl.real)
        return len(self.domains) - 1

    def table(self, log_table: Vector, *scope: int) -> None:
        self._add(scope, (log_table,))

    def normal(
        self, discrete: tuple[int, ...], reals: tuple[int, ...], slope: object, target: object,
        var: object,
    ) -> None:  # fmt: skip
        """log N(target; Σ slope * x, var), each by state: slope (states…, real)."""
        slope, target, var = (np.asarray(part, dtype=float) for part in (slope, target, var))
        states = tuple(self.domains[d].num_states for d in discrete)
        slope = np.broadcast_to(slope, (*states, len(reals)))
        # In the user's units, x = origin + unit * z.
        target = self.unit * np.broadcast_to(target, states) + self.origin * slope.sum(axis=-1)
        var = self.unit**2 * np.broadcast_to(var, states)
        A = -0.5 * slope[..., :, None] * slope[..., None, :] / var[..., None, None]
        b = slope * (target / var)[..., None]
        c = -0.5 * target**2 / var - 0.5 * np.log(2 * np.pi * var)
        self._add((*discrete, *reals), (A, b, c))

    def _add(self, scope: tuple[int, ...], parts: tuple[Vector, ...]) -> None:
        shape = tuple(self.domains[v].num_states for v in scope)
        self.factors.setdefault(shape, []).append((scope, parts))

    def sensor(self, rng: Rng, x: int, reading: float, noise: float) -> int:
        """A Boolean: a sensor that reads x, or if it is broken anything."""
        broken = self.discrete()
        self.table(np.array([0.0, rng.uniform(-4, 0)]), broken)
        elsewhere = rng.choice([0.0, 1.0])  # it may still follow x, if badly
        slope = [[1.0], [elsewhere]]
        target = [reading, reading if elsewhere else reading - rng.normal(0, 2)]
        self.normal((broken,), (x,), slope, target, [noise, rng.uniform(10, 60)])
        return broken

    def done(self) -> Drawn:
        groups = []
        for same in self.factors.values():
            parts = [np.stack(column) for column in zip(*(own for _, own in same), strict=True)]
            kind = hl.Table if len(parts) == 1 else hl.ConditionalQuadratic
            groups.append(hl.FactorGroup(kind(*parts), np.array([scope for scope, _ in same])))
        names = hl.Variables.of(self.domains, hl.Names.numbered(len(self.domains)))
        low = np.full(len(self.domains), self.origin - self.unit * self.reach)
        high = low + 2 * self.unit * self.reach
        return Drawn(hl.FactorGraph(names, tuple(groups)), low, high)


def star(rng: Rng, sketch: Sketch, size: int) -> None:
    """One real with many sensors."""
    x, sketch.reach = sketch.real(), 40.0
    sketch.normal((), (x,), [1.0], rng.normal(), rng.uniform(1, 4))
    centre, noise = rng.normal(0, 1.5), rng.uniform(0.05, 0.5)
    for _ in range(3 * size):
        wild = rng.random() < 0.15
        sketch.sensor(rng, x, rng.normal(0, 8) if wild else rng.normal(centre, noise**0.5), noise)


def walk(rng: Rng, sketch: Sketch, size: int) -> None:
    """A level along time, with a sensor a day."""
    step, noise = rng.uniform(0.3, 1.0), rng.uniform(0.2, 1.0)
    sketch.reach = 30.0
    x, level = sketch.real(), 0.0
    sketch.normal((), (x,), [1.0], 0.0, rng.uniform(1, 4))
    for day in range(size):
        if day:
            after = sketch.real()
            sketch.normal((), (x, after), [-1.0, 1.0], 0.0, step)
            x, level = after, 0.9 * level + rng.normal(0, step**0.5)
        wild = rng.random() < 0.2
        sketch.sensor(rng, x, rng.normal(0, 5) if wild else rng.normal(level, noise**0.5), noise)


def tree(rng: Rng, sketch: Sketch, size: int) -> None:
    """Reals in a random tree, each with up to three sensors."""
    sketch.reach = 25.0
    reals = [sketch.real()]
    sketch.normal((), (reals[0],), [1.0], 0.0, rng.uniform(1, 3))
    for _ in range(size):
        parent, child = int(rng.choice(reals)), sketch.real()
        sketch.normal(
            (), (parent, child), [-rng.uniform(0.4, 1.0), 1.0], 0.0, rng.uniform(0.3, 1.5)
        )
        reals.append(child)
    for x in reals:
        for _ in range(rng.integers(0, 4)):
            sketch.sensor(rng, x, rng.normal(0, 2), rng.uniform(0.3, 1.0))


def biased(rng: Rng, sketch: Sketch, size: int) -> None:
    """A hub that sensors read with a bias of their own, itself real and hidden."""
    hub, sketch.reach = sketch.real(), 25.0
    sketch.normal((), (hub,), [1.0], rng.normal(), rng.uniform(1, 3))
    spread, centre = rng.uniform(0.3, 1.0), rng.normal()
    for _ in range(size):
        bias, broken = sketch.real(), sketch.discrete()
        sketch.normal((), (bias,), [1.0], 0.0, spread)
        sketch.table(np.array([0.0, rng.uniform(-3, 0)]), broken)
        for _ in range(rng.integers(1, 3)):
            reading = rng.normal(centre, 1.0) if rng.random() < 0.8 else rng.normal(0, 5)
            target, var = [reading, reading - rng.normal()], [rng.uniform(0.3, 1.0), 30.0]
            sketch.normal((broken,), (hub, bias), [[1.0, 1.0], [0.0, 0.0]], target, var)


def slopes(rng: Rng, sketch: Sketch, size: int) -> None:
    """Two regression lines through zero; a Boolean a row says which of them it follows."""
    a, b = sketch.real(), sketch.real()
    sketch.origin, sketch.reach = 0.0, 16.0
    for x in (a, b):
        sketch.normal((), (x,), [1.0], rng.normal(0, 0.5), rng.uniform(1, 2))
    noise = rng.uniform(0.3, 1.0)
    for _ in range(2 * size):
        which, u = sketch.discrete(), rng.uniform(-1, 1)
        sketch.table(np.array([0.0, rng.normal(0, 0.5)]), which)
        y = u * rng.choice([1.2, -0.8]) + rng.normal(0, noise**0.5)
        sketch.normal((which,), (a, b), [[u, 0.0], [0.0, u]], y, noise)


def ladder(rng: Rng, sketch: Sketch, size: int) -> None:
    """A grid of reals of width two, with a sensor at each."""
    columns = max(2, size // 3)
    ids = np.array([[sketch.real() for _ in range(2)] for _ in range(columns)])
    sketch.reach = 11.0
    tie = rng.uniform(0.7, 2.0)
    pairs = [*zip(ids[:-1].ravel(), ids[1:].ravel(), strict=True), *ids.tolist()]
    for first, second in pairs:
        sketch.normal((), (int(first), int(second)), [1.0, -1.0], 0.0, tie)
    for x in ids.ravel().tolist():
        sketch.normal((), (x,), [1.0], 0.0, rng.uniform(1.0, 2.0))
        sketch.sensor(rng, x, rng.normal(0, 1.5), rng.uniform(0.8, 1.5))


def mixed(rng: Rng, sketch: Sketch, size: int) -> None:
    """A chain of categoricals of two to five states that move a chain of reals."""
    sketch.reach = 30.0
    x = d = None
    for _ in range(max(2, size // 2)):
        num_states = int(rng.integers(2, 6))
        e, y = sketch.discrete(num_states), sketch.real()
        mean, var = rng.normal(0, 1.5, num_states), rng.uniform(0.3, 2.0, num_states)
        if d is None or x is None:
            sketch.table(rng.normal(size=num_states), e)
            sketch.normal((e,), (y,), [1.0], mean, var)
        else:
            log_table = rng.normal(0, 1.5, (sketch.domains[d].num_states, num_states))
            log_table[0, 0] = -np.inf if rng.random() < 0.3 else 0.0
            sketch.table(log_table, d, e)
            sketch.normal((e,), (x, y), [-rng.uniform(0.5, 1.0), 1.0], mean, var)
        for _ in range(rng.integers(0, 3)):
            sketch.sensor(rng, y, rng.normal(0, 3), rng.uniform(0.3, 1.0))
        d, x = e, y


def parts(rng: Rng, sketch: Sketch, size: int) -> None:
    """Many unconnected models of the other families, all small, some of them equal."""
    for _ in range(size // 2):
        family = [walk, tree, mixed, star][rng.integers(4)]
        seed = rng.integers(100)
        reach = sketch.reach
        for _ in range(rng.integers(1, 4)):
            family(np.random.default_rng(seed), sketch, int(1 + seed % 2))
        sketch.reach = max(reach, sketch.reach)


FAMILIES: dict[str, Callable[[Rng, Sketch, int], None]] = {
    "star": star,
    "walk": walk,
    "tree": tree,
    "biases": biased,
    "slopes": slopes,
    "ladder": ladder,
    "mixed": mixed,
    "parts": parts,
}


def drawn(family: str, seed: int, size: int) -> Drawn:
    """A model of a family; half of them in other units, far from zero."""
    rng = np.random.default_rng([list(FAMILIES).index(family), seed, size])
    plain = seed % 2 == 0
    unit = 1.0 if plain else float(10 ** rng.uniform(-3, 3))
    sketch = Sketch(unit, 0.0 if plain else float(unit * rng.normal(0, 20)))
    FAMILIES[family](rng, sketch, size)
    return sketch.done()
