"""Slow and obviously right: answers of exact inference, and classes of variables.

`solve` enumerates every discrete state, and finds the reals by dense algebra or quadrature. It
rests on `FactorGraph.log_density` at single assignments: nothing of the solvers, of `condition()`
or of the insides of potentials is used. `coarsest_equitable` looks at one variable and one factor
at a time, in plain Python.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, special, stats

from hylift.graph import FactorGraph
from hylift.potentials import ConditionalQuadratic, Function, Potential, Table
from hylift.potentials.reduced import Reduced

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Answer:
    """What exact inference should find; dictionaries are by variable id, hidden ones only."""

    log_z: float
    probs: dict[int, Vector]
    mean: dict[int, float]
    var: dict[int, float]
    map_energy: float


@dataclass(frozen=True, slots=True)
class Slice:
    """The reals in one joint state of the discrete variables: log-integral, moments, maximum."""

    log_total: float
    mean: Vector
    second: Vector  # E[x²]
    log_max: float


def solve(graph: FactorGraph) -> Answer:
    """The posterior of a small graph, evidence included."""
    num_states = graph.variables.num_states
    hidden = hidden_variables(graph)
    discrete = [v for v in hidden if num_states[v] > 0]
    numerical = numerical_reals(graph)
    reals = numerical + [v for v in hidden if num_states[v] == 0 and v not in numerical]
    if not reals:
        return _enumerated(graph, discrete)
    lower, upper = graph.variables.lower[numerical], graph.variables.upper[numerical]
    states, slices = [], []
    for state in itertools.product(*(range(num_states[v]) for v in discrete)):
        density = log_density_of_reals(graph, dict(zip(discrete, state, strict=True)), reals)
        states.append(state)
        slices.append(integrated(density, lower, upper, len(reals) - len(numerical)))
    return _mixed(discrete, reals, num_states, states, slices)


def _enumerated(graph: FactorGraph, discrete: list[int]) -> Answer:
    """The same where nothing hidden is real: a sum over all joint states at once."""
    sizes = graph.variables.num_states[discrete].tolist()
    states = np.array(list(itertools.product(*map(range, sizes))), dtype=int)
    values = np.zeros((len(states), graph.num_variables))
    values[:, graph.evidence.variable] = graph.evidence.value
    values[:, discrete] = states
    logs = np.full(len(states), graph.log_constant)
    for group in graph.groups:
        for scope, row, times in zip(group.scope, group.row, group.multiplicity, strict=True):
            rows = np.full(len(states), row)
            logs = logs + times * group.potential.log_value(rows, list(values[:, scope].T))
    log_z = float(special.logsumexp(logs))
    if log_z == -np.inf:
        return Answer(log_z, {}, {}, {}, np.inf)
    weights = np.exp(logs - log_z)
    probs = {
        v: np.bincount(column, weights, size)
        for v, column, size in zip(discrete, states.T, sizes, strict=True)
    }
    return Answer(log_z, probs, {}, {}, -float(logs.max()))


def hidden_variables(graph: FactorGraph) -> list[int]:
    """Variables that are not observed without error."""
    hard = graph.evidence.var == 0
    observed = set(graph.evidence.variable[hard].tolist())
    return [v for v in range(graph.num_variables) if v not in observed]


def numerical_reals(graph: FactorGraph) -> list[int]:
    """Hidden reals that have bounds, or stand in a factor that may be anything."""
    variables = graph.variables
    functions = [g.scope.ravel() for g in graph.groups if g.potential.quadratic() is None]
    bounded = np.isfinite(variables.lower) | np.isfinite(variables.upper)
    bounded[np.concatenate([np.zeros(0, dtype=int), *functions])] = True
    return [v for v in hidden_variables(graph) if variables.num_states[v] == 0 and bounded[v]]


def log_density(graph: FactorGraph, values: Vector) -> float:
    """Log-density at all variables' values, with the likelihood of soft evidence."""
    total = graph.log_density(values)
    evidence = graph.evidence
    for variable, value, var in zip(evidence.variable, evidence.value, evidence.var, strict=True):
        if var > 0:
            total += stats.norm.logpdf(value, values[variable], np.sqrt(var))
    return float(total)


def log_density_of_reals(
    graph: FactorGraph, state: dict[int, int], reals: list[int]
) -> Callable[[Vector], float]:
    """The log-density as a function of the hidden reals, everything else fixed."""
    values = np.zeros(graph.num_variables)
    hard = graph.evidence.var == 0
    values[graph.evidence.variable[hard]] = graph.evidence.value[hard]
    for variable, s in state.items():
        values[variable] = s

    def density(x: Vector) -> float:
        filled = values.copy()
        filled[reals] = x
        return log_density(graph, filled)

    return density


def quadratic(density: Callable[[Vector], float], size: int) -> tuple[Vector, Vector, float]:
    """Precision J, linear h and constant c of a density that is -½ xᵀJx + hᵀx + c."""
    unit = np.eye(size)
    c = density(np.zeros(size))
    plus = np.array([density(unit[i]) for i in range(size)])
    minus = np.array([density(-unit[i]) for i in range(size)])
    h = (plus - minus) / 2
    J = np.zeros((size, size))
    for i in range(size):
        J[i, i] = 2 * c - plus[i] - minus[i]
        for j in range(i):
            J[i, j] = J[j, i] = plus[i] + plus[j] - c - density(unit[i] + unit[j])
    return J, h, c


def gaussian(density: Callable[[Vector], float], size: int) -> Slice:
    """A slice whose reals are jointly Gaussian, by dense linear algebra."""
    if density(np.zeros(size)) == -np.inf:
        return Slice(-np.inf, np.zeros(size), np.zeros(size), -np.inf)
    J, h, c = quadratic(density, size)
    if size == 0:
        return Slice(c, h, h, c)
    if np.linalg.eigvalsh(J).min() <= 1e-9:
        raise ValueError("this density has no finite integral")
    mean = np.linalg.solve(J, h)
    log_max = c + 0.5 * h @ mean
    log_total = log_max + 0.5 * size * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(J)[1]
    return Slice(float(log_total), mean, np.diag(np.linalg.inv(J)) + mean**2, float(log_max))


def integrated(
    density: Callable[[Vector], float], lower: Vector, upper: Vector, num_gaussian: int
) -> Slice:
    """A slice by quadrature over the first reals, at most two; the others are Gaussian."""

    def at(*x: float) -> Slice:
        return gaussian(lambda rest: density(np.concatenate([x, rest])), num_gaussian)

    if not len(lower):
        return at()
    size = len(lower) + num_gaussian
    top = maximum(lambda x: at(*x).log_max, lower, upper)
    if top == -np.inf:
        return Slice(-np.inf, np.zeros(size), np.zeros(size), -np.inf)

    def weighed(*x: float) -> Vector:
        found = at(*x)
        moments = np.concatenate([[1.0], x, found.mean, np.square(x), found.second])
        return np.exp(found.log_total - top) * moments

    total = _quadrature(weighed, lower, upper)
    first, second = np.split(total[1:] / total[0], 2)
    return Slice(float(np.log(total[0]) + top), first, second, top)


def _quadrature(f: Callable[..., Vector], lower: Vector, upper: Vector) -> Vector:
    """Adaptive in one dimension; in two, a product rule that must agree with a coarser one."""
    if len(lower) == 1:
        return np.asarray(integrate.quad_vec(f, lower[0], upper[0], epsabs=1e-12, epsrel=1e-12)[0])
    if len(lower) > 2 or not np.isfinite([lower, upper]).all():
        raise ValueError("quadrature is for one real, or two with bounds")
    coarse, fine = (_product_rule(f, lower, upper, num_nodes) for num_nodes in (36, 44))
    if not np.allclose(coarse, fine, rtol=1e-8, atol=1e-9):
        raise ValueError(f"quadrature has not settled: {coarse} and {fine}")
    return fine


def _product_rule(f: Callable[..., Vector], lower: Vector, upper: Vector, num_nodes: int) -> Vector:
    nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
    half, middle = (upper - lower) / 2, (upper + lower) / 2
    return sum(
        half[0] * half[1] * u * v * f(middle[0] + half[0] * s, middle[1] + half[1] * t)
        for s, u in zip(nodes, weights, strict=True)
        for t, v in zip(nodes, weights, strict=True)
    )


def maximum(density: Callable[[Vector], float], lower: Vector, upper: Vector) -> float:
    """The largest log-density, on ever finer grids around the best points of a coarse one."""
    low, high = np.maximum(lower, -20.0), np.minimum(upper, 20.0)
    points, values = _on_grid(density, low, high, {1: 201, 2: 21}[len(lower)])
    best = float(values.max())
    if best == -np.inf:
        return best
    for start in np.argsort(-values, kind="stable")[:2]:
        centre, reach = points[start], (high - low) / 20
        for _ in range(9):
            around = np.maximum(centre - reach, low), np.minimum(centre + reach, high)
            near, found = _on_grid(density, *around, 9)
            centre, reach = near[int(np.argmax(found))], reach / 4
            best = max(best, float(found.max()))
    return best


def _on_grid(
    density: Callable[[Vector], float], low: Vector, high: Vector, count: int
) -> tuple[list[Vector], Vector]:
    axes = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
    points = [np.array(point) for point in itertools.product(*axes)]
    return points, np.array([density(point) for point in points])


def _mixed(
    discrete: list[int],
    reals: list[int],
    num_states: NDArray[np.int32],
    states: list[tuple[int, ...]],
    slices: list[Slice],
) -> Answer:
    log_totals = np.array([found.log_total for found in slices])
    log_z = float(special.logsumexp(log_totals))
    map_energy = -max(found.log_max for found in slices)
    if log_z == -np.inf:
        return Answer(log_z, {}, {}, {}, map_energy)
    weights = np.exp(log_totals - log_z)
    probs = {v: np.zeros(num_states[v]) for v in discrete}
    for weight, state in zip(weights, states, strict=True):
        for v, s in zip(discrete, state, strict=True):
            probs[v][s] += weight
    mean = sum(w * found.mean for w, found in zip(weights, slices, strict=True))
    second = sum(w * found.second for w, found in zip(weights, slices, strict=True))
    return Answer(
        log_z,
        probs,
        {v: float(mean[i]) for i, v in enumerate(reals)},
        {v: float(second[i] - mean[i] ** 2) for i, v in enumerate(reals)},
        map_energy,
    )


def coarsest_equitable(graph: FactorGraph, tolerance: float = 1e-12) -> list[int]:
    """The class of each variable in the coarsest equitable partition of a graph without evidence.

    Classes are numbered by their first members. Variables of a class share domain and, for each
    class of factors and each set of exchangeable slots, the total multiplicity of the slots in
    which they stand, divided by their own.
    """
    variables, factors = graph.variables, plain_factors(graph, tolerance)
    members = [Fraction(n) for n in variables.multiplicity.tolist()]
    color = _numbered([variables.domain(v) for v in range(len(members))])
    while True:
        received: list[defaultdict[tuple[int, int], Fraction]]
        received = [defaultdict(Fraction) for _ in color]
        seen = _numbered([factor.color(color) for factor in factors])
        for factor, its_color in zip(factors, seen, strict=True):
            for variable, orbit in zip(factor.scope, factor.orbits, strict=True):
                received[variable][its_color, orbit] += factor.multiplicity / members[variable]
        finer = _numbered([(c, frozenset(r.items())) for c, r in zip(color, received, strict=True)])
        if len(set(finer)) == len(set(color)):
            return color
        color = finer


def factor_classes(
    graph: FactorGraph, variable_classes: Sequence[int], tolerance: float = 1e-12
) -> list[int]:
    """The class of each factor, group after group, numbered by first members."""
    factors = plain_factors(graph, tolerance)
    return _numbered([factor.color(variable_classes) for factor in factors])


@dataclass(frozen=True, slots=True)
class PlainFactor:
    """One factor on its own: what it computes, and where."""

    kind: Hashable  # equal for potentials of one signature with equal parameters
    scope: tuple[int, ...]
    orbits: tuple[int, ...]  # per slot: the first of those with which it may be exchanged
    multiplicity: Fraction

    def color(self, variable_color: Sequence[int]) -> Hashable:
        """The kind, and the colors in the slots, sorted among exchangeable ones."""
        slots = zip(self.orbits, (variable_color[v] for v in self.scope), strict=True)
        return self.kind, self.orbits, tuple(sorted(slots))


def plain_factors(graph: FactorGraph, tolerance: float) -> list[PlainFactor]:
    """All factors, group after group."""
    factors = []
    known: dict[Hashable, list[Vector]] = {}
    for group in graph.groups:
        signature = group.potential.signature
        kinds, orbits = {}, {}
        for row in set(group.row.tolist()):
            alike = known.setdefault(signature, [])
            kinds[row] = signature, _position(alike, parameters(group.potential, row), tolerance)
            orbits[row] = _orbits(group.potential, row)
        columns = group.scope.tolist(), group.row.tolist(), group.multiplicity.tolist()
        for scope, row, n in zip(*columns, strict=True):
            factors.append(PlainFactor(kinds[row], tuple(scope), orbits[row], Fraction(n)))
    return factors


def parameters(potential: Potential, row: int) -> Vector:
    """Parameters of a row; a constant that is added to all log-values does not count."""
    if isinstance(potential, Table):
        return _from_top(potential.log_table[row].ravel())
    if isinstance(potential, ConditionalQuadratic):
        parts = potential.A[row], potential.b[row], _from_top(potential.c[row])
        return np.concatenate([part.ravel() for part in parts])
    return potential.flat[row]


def _from_top(log_values: Vector) -> Vector:
    top = log_values.max()
    return log_values - top if np.isfinite(top) else log_values


def _position(known: list[Vector], parameters: Vector, tolerance: float) -> int:
    """Where among the known parameters these are; they join them when they are new."""
    for place, other in enumerate(known):
        if np.allclose(other, parameters, rtol=tolerance, atol=0):
            return place
    known.append(parameters)
    return len(known) - 1


def _orbits(potential: Potential, row: int) -> tuple[int, ...]:
    """Per slot: the first slot with which it may be exchanged, itself where there is none."""
    slots = range(len(potential.slot_states))
    return tuple(
        next(first for first in slots if first == slot or exchangeable(potential, row, first, slot))
        for slot in slots
    )


def exchangeable(potential: Potential, row: int, first: int, second: int) -> bool:
    """Whether two slots may be swapped; of a function: whether its author says so."""
    if isinstance(potential, Reduced):
        return exchangeable(potential.whole, row, potential.slots[first], potential.slots[second])
    if isinstance(potential, Function):
        return any({first, second} <= set(together) for together in potential.symmetric)
    if potential.slot_states[first] != potential.slot_states[second]:
        return False
    rng = np.random.default_rng(0)
    for _ in range(3):
        values = [np.arange(size) if size else rng.normal(size=2) for size in potential.slot_states]
        values[second] = values[first]
        points = list(np.meshgrid(*values, indexing="ij"))
        swapped = list(points)
        swapped[first], swapped[second] = points[second], points[first]
        rows = np.full(points[0].shape, row)
        if not np.allclose(
            potential.log_value(rows, points), potential.log_value(rows, swapped), rtol=1e-9, atol=0
        ):
            return False
    return True


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    """Keys as numbers, in the order in which they first appear."""
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return [place[key] for key in keys]
