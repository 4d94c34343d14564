"""Small named models on which every solver is tried."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import (
    FactorGraph,
    FactorGroup,
    Soft,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.potentials import ConditionalQuadratic, Function, Table

EITHER = [[0, 1], [1, 1]]
IMPLIES = [[1, 1], [0, 1]]


@dataclass(frozen=True, slots=True)
class ZooModel:
    """A model and what is special about it."""

    graph: Callable[[], FactorGraph]
    tags: frozenset[str]

    def __str__(self) -> str:
        return self.graph.__name__


def toy_hybrid_mln(num_a: int = 2, num_b: int = 3, num_boxes: int = 2) -> FactorGraph:
    """Things in boxes, attracted to each other, with positions between -15 and 15."""
    pairs = [(a, b) for a in range(num_a) for b in range(num_b)]
    triples = [(a, b, box) for a, b in pairs for box in range(num_boxes)]
    boxes = range(num_boxes)
    variables = {f"AInBox(a{a},x{box})": boolean for a in range(num_a) for box in boxes}
    variables |= {f"BInBox(b{b},x{box})": boolean for b in range(num_b) for box in boxes}
    variables |= {f"attractedTo(a{a},b{b})": boolean for a, b in pairs}
    variables |= {f"posA(a{a})": interval(-15, 15) for a in range(num_a)}
    variables |= {f"posB(b{b})": interval(-15, 15) for b in range(num_b)}
    a_in, b_in, attracted = np.ix_([0, 1], [0, 1], [0, 1])
    together = Table.shared(0.1 * (1 - a_in * b_in * (1 - attracted)))
    place = ConditionalQuadratic.switch(
        [
            ConditionalQuadratic.squared_distance(0.2, [0, 1], 2),
            ConditionalQuadratic.squared_distance(0.2, [1, 0], -7),
        ]
    )
    prior = ConditionalQuadratic.shared([[-0.04, 0], [0, -0.04]], [0, 0])
    return FactorGraph.build(
        variables,
        [
            (
                together,
                [
                    [f"AInBox(a{a},x{box})", f"BInBox(b{b},x{box})", f"attractedTo(a{a},b{b})"]
                    for a, b, box in triples
                ],
            ),
            (place, [[f"attractedTo(a{a},b{b})", f"posA(a{a})", f"posB(b{b})"] for a, b in pairs]),
            (prior, [[f"posA(a{a})", f"posB(b{b})"] for a, b in pairs]),
        ],
    )


def smallest_toy_hybrid_mln() -> FactorGraph:
    """The toy with one thing of each kind, whose bounds cut off some probability."""
    return toy_hybrid_mln(1, 1, 1)


def hard_clause() -> FactorGraph:
    """Either H or S: each is true in two of three possible states."""
    return FactorGraph.build(
        {"H": boolean, "S": boolean}, [(Table.weighted(np.inf, EITHER), ["H", "S"])]
    )


def friends_and_smokers(num_people: int = 3) -> FactorGraph:
    """Smoking causes cancer, and friends smoke alike."""
    people = range(num_people)
    pairs = [(x, y) for x in people for y in people if x != y]
    variables = {f"Smokes(p{x})": boolean for x in people}
    variables |= {f"Cancer(p{x})": boolean for x in people}
    variables |= {f"Friends(p{x},p{y})": boolean for x, y in pairs}
    alike = [[[1, 1], [1, 1]], [[1, 0], [0, 1]]]
    return FactorGraph.build(
        variables,
        [
            (Table.weighted(-1.4, [0, 1]), [[f"Smokes(p{x})"] for x in people]),
            (Table.weighted(-2.3, [0, 1]), [[f"Cancer(p{x})"] for x in people]),
            (Table.weighted(-4.6, [0, 1]), [[f"Friends(p{x},p{y})"] for x, y in pairs]),
            (Table.weighted(1.5, IMPLIES), [[f"Smokes(p{x})", f"Cancer(p{x})"] for x in people]),
            (
                Table.weighted(1.1, alike),
                [[f"Friends(p{x},p{y})", f"Smokes(p{x})", f"Smokes(p{y})"] for x, y in pairs],
            ),
        ],
    )


def hidden_markov_model(num_steps: int = 5) -> FactorGraph:
    """Weather behind observed umbrellas."""
    weather = categorical(["sun", "cloud", "rain"])
    steps = range(num_steps)
    variables = {f"weather(t{t})": weather for t in steps}
    variables |= {f"umbrella(t{t})": boolean for t in steps}
    start = Table.from_values([0.5, 0.3, 0.2])
    change = Table.from_values([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.4, 0.5]])
    umbrella = Table.from_values([[0.95, 0.05], [0.6, 0.4], [0.1, 0.9]])
    graph = FactorGraph.build(
        variables,
        [
            (start, ["weather(t0)"]),
            (change, [[f"weather(t{t})", f"weather(t{t + 1})"] for t in steps[:-1]]),
            (umbrella, [[f"weather(t{t})", f"umbrella(t{t})"] for t in steps]),
        ],
    )
    return graph.observe({f"umbrella(t{t})": t % 2 == 1 for t in steps})


def mixed_cardinality_loop() -> FactorGraph:
    """A loop of variables with 2, 3 and 4 states, and two ternary factors."""
    rng = np.random.default_rng(1)
    domains = {"a": boolean, "b": categorical(3), "c": categorical(4), "d": boolean}
    domains["e"] = categorical(["low", "middle", "high"])
    scopes = [["a", "b"], ["b", "c"], ["c", "d"], ["e", "a"], ["d", "e"]]
    scopes += [["c", "a", "b"], ["b", "d", "e"], ["c"]]
    sizes = {name: domain.num_states for name, domain in domains.items()}
    return FactorGraph.build(
        domains,
        [(Table.shared(rng.normal(size=[sizes[n] for n in scope])), scope) for scope in scopes],
    )


def one_state_categorical() -> FactorGraph:
    """A variable that cannot vary, beside one that can."""
    return FactorGraph.build(
        {"only": categorical(1), "b": boolean},
        [(Table.shared([[0.3, -0.4]]), ["only", "b"]), (Table.shared([2.0]), ["only"])],
    )


def isolated_variables() -> FactorGraph:
    """Variables without factors: a Boolean, a categorical and a real on an interval."""
    return FactorGraph.build(
        {"b": boolean, "c": categorical(3), "u": interval(-1, 3), "d": boolean},
        [(Table.shared([0.0, 1.0]), ["d"])],
    )


def gaussian_chain(num_steps: int = 6) -> FactorGraph:
    """A random walk with a prior at its start, not normalised."""
    names = [f"x{t}" for t in range(num_steps)]
    return FactorGraph.build(
        dict.fromkeys(names, real),
        [
            (ConditionalQuadratic.squared_distance(0.7, [1.0], 1.5), [names[0]]),
            (
                ConditionalQuadratic.squared_distance(0.5, [1, -1]),
                [[names[t], names[t + 1]] for t in range(num_steps - 1)],
            ),
            (ConditionalQuadratic.shared([[0.0]], [0.25]), [[names[-1]]]),
        ],
    )


def gaussian_loop(size: int = 5) -> FactorGraph:
    """A loop of products of reals, each with a square that holds it in place."""
    names = [f"x{i}" for i in range(size)]
    products = [(-1) ** i * 0.3 * (i + 1) / size for i in range(size)]
    factors = [(ConditionalQuadratic.square(-0.5 - 0.1 * i), [names[i]]) for i in range(size)]
    factors += [
        (ConditionalQuadratic.product(weight), [names[i], names[(i + 1) % size]])
        for i, weight in enumerate(products)
    ]
    factors += [(ConditionalQuadratic.shared([[0.0]], [1.0]), [names[2]])]
    return FactorGraph.build(dict.fromkeys(names, real), factors)


def relational_gaussian_model(num_markets: int = 4, num_banks: int = 2) -> FactorGraph:
    """Recession, markets, losses and revenues, as arrays, without evidence."""
    market, bank = np.indices((num_markets, num_banks)).reshape(2, -1)
    markets = 1 + np.arange(num_markets)
    losses = 1 + num_markets + np.arange(num_markets * num_banks)
    revenues = 1 + num_markets + num_markets * num_banks + np.arange(num_banks)
    names = ["recession", *(f"market(c{c})" for c in range(num_markets))]
    names += [f"loss(c{c},b{b})" for c, b in zip(market, bank, strict=True)]
    names += [f"revenue(b{b})" for b in range(num_banks)]
    groups = [
        _rgm_group(-7, np.zeros_like(markets), markets),
        _rgm_group(5, markets[market], losses),
        _rgm_group(7, losses, revenues[bank]),
    ]
    return FactorGraph(Variables.named(dict.fromkeys(names, interval(-50, 50))), tuple(groups))


def unbounded_relational_gaussian_model() -> FactorGraph:
    """The same without bounds, with one market and one loss observed."""
    graph = relational_gaussian_model()
    names = graph.variables.names.render().to_pylist()
    unbounded = FactorGraph(Variables.named(dict.fromkeys(names, real)), graph.groups)
    return unbounded.observe({"market(c1)": 4.0, "loss(c2,b0)": -3.0})


def _rgm_group(
    covariance: float, first: NDArray[np.int64], second: NDArray[np.int64]
) -> FactorGroup:
    potential = ConditionalQuadratic.gaussian(
        [0.0, 0.0], [[10.0, covariance], [covariance, 10.0]], normalised=False
    )
    return FactorGroup(potential, np.stack([first, second], axis=1))


def kalman_chain(num_steps: int = 5) -> FactorGraph:
    """A position with drift that is measured at every step."""
    steps = range(num_steps)
    variables = {f"x(t{t})": real for t in steps} | {f"y(t{t})": real for t in steps}
    graph = FactorGraph.build(
        variables,
        [
            (ConditionalQuadratic.gaussian([0.5], [[2.0]]), ["x(t0)"]),
            (
                ConditionalQuadratic.linear_gaussian([0.9], 0.3, 0.2),
                [[f"x(t{t + 1})", f"x(t{t})"] for t in steps[:-1]],
            ),
            (
                ConditionalQuadratic.linear_gaussian([1.0], 0.5),
                [[f"y(t{t})", f"x(t{t})"] for t in steps],
            ),
        ],
    )
    return graph.observe({f"y(t{t})": np.sin(t) for t in steps})


def switching_regime(num_steps: int = 3) -> FactorGraph:
    """A Markov chain whose state selects mean and variance of a real that also has inertia."""
    steps = range(num_steps)
    variables = {f"regime(t{t})": categorical(["calm", "storm"]) for t in steps}
    variables |= {f"x(t{t})": real for t in steps}
    return FactorGraph.build(
        variables,
        [
            (
                Table.from_values([[0.9, 0.1], [0.3, 0.7]]),
                [[f"regime(t{t})", f"regime(t{t + 1})"] for t in steps[:-1]],
            ),
            (
                ConditionalQuadratic.gaussian([[0.0], [3.0]], [[[0.5]], [[4.0]]]),
                [[f"regime(t{t})", f"x(t{t})"] for t in steps],
            ),
            (
                ConditionalQuadratic.squared_distance(0.4, [1, -1]),
                [[f"x(t{t})", f"x(t{t + 1})"] for t in steps[:-1]],
            ),
        ],
    )


def observed_mixture() -> FactorGraph:
    """Which of three sensors made a measurement, some of the reals and states being observed."""
    sensor = categorical(["a", "b", "c"])
    graph = FactorGraph.build(
        {"sensor": sensor, "works": boolean, "x": real, "y": real, "z": real},
        [
            (Table.from_values([[0.1, 0.2], [0.3, 0.4], [0.0, 0.6]]), ["sensor", "works"]),
            (ConditionalQuadratic.gaussian([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]), ["x", "z"]),
            (
                ConditionalQuadratic.switch(
                    [ConditionalQuadratic.linear_gaussian([w], v) for w, v in
                     [(1.0, 0.5), (2.0, 1.0), (-1.0, 3.0)]]
                ),
                ["sensor", "y", "x"],
            ),
        ],
    )  # fmt: skip
    return graph.observe({"works": True, "y": 1.75})


def hard_constraint_keeps_a_real_in_place() -> FactorGraph:
    """Nothing holds x where `on` is false, but that is impossible."""
    return FactorGraph.build(
        {"on": boolean, "other": boolean, "x": real},
        [
            (ConditionalQuadratic.squared_distance(0.5, [1.0], 2.0).times([0, 1]), ["on", "x"]),
            (Table.weighted(np.inf, [[0, 0], [1, 1]]), ["on", "other"]),
            (Table.shared([[0.0, 0.0], [0.4, -0.3]]), ["on", "other"]),
        ],
    )


def distant_constraint_keeps_a_real_in_place() -> FactorGraph:
    """Nothing holds x where the first of a chain is false; the last one is true, and all agree."""
    chain = [f"b{i}" for i in range(5)]
    return FactorGraph.build(
        dict.fromkeys(chain, boolean) | {"x": real},
        [
            (ConditionalQuadratic.gaussian([1.0], [[2.0]]).times([0, 1]), ["b0", "x"]),
            (
                Table.weighted(np.inf, [[1, 0], [0, 1]]),
                list(itertools.pairwise(chain)),
            ),
            (Table.shared([0.0, 1.5]), ["b2"]),
            (Table.weighted(np.inf, [0, 1]), ["b4"]),
        ],
    )


def soft_evidence_on_a_real() -> FactorGraph:
    """A real measured with error, and one that depends on it."""
    graph = FactorGraph.build(
        {"x": real, "y": real},
        [
            (ConditionalQuadratic.gaussian([0.0], [[4.0]]), ["x"]),
            (ConditionalQuadratic.linear_gaussian([2.0], 0.5, -1.0), ["y", "x"]),
        ],
    )
    return graph.observe({"x": Soft(1.5, 0.8)})


def soft_evidence_outside_the_interval() -> FactorGraph:
    """A measurement may lie beyond the bounds of what it measures."""
    graph = FactorGraph.build(
        {"x": interval(0, 1)}, [(ConditionalQuadratic.squared_distance(0.1, [1.0], 0.3), ["x"])]
    )
    return graph.observe({"x": Soft(1.4, 0.5)})


def truncated_gaussian() -> FactorGraph:
    """A Gaussian cut off on both sides."""
    return FactorGraph.build(
        {"x": interval(-0.5, 2.0)}, [(ConditionalQuadratic.gaussian([0.3], [[1.0]]), ["x"])]
    )


def coupled_bounded_reals() -> FactorGraph:
    """Two reals on intervals whose product matters, one of them without a prior of its own."""
    return FactorGraph.build(
        {"x": interval(-1, 2), "y": interval(0, 3), "up": boolean},
        [
            (ConditionalQuadratic.product(0.8), ["x", "y"]),
            (ConditionalQuadratic.squared_distance(0.5, [1.0], 0.5), ["x"]),
            (ConditionalQuadratic.shared([[0.0]], [1.0]).times([-0.5, 0.5]), ["up", "y"]),
        ],
    )


def bounded_and_unbounded_reals() -> FactorGraph:
    """A real on an interval between two without bounds, one of which depends on a state."""
    return FactorGraph.build(
        {"left": real, "x": interval(-1, 1), "right": real, "on": boolean},
        [
            (ConditionalQuadratic.linear_gaussian([1.0], 0.5), ["left", "x"]),
            (ConditionalQuadratic.product(0.4), ["x", "right"]),
            (ConditionalQuadratic.gaussian([[0.0], [2.0]], [[1.0]]), ["on", "right"]),
        ],
    )


def function_of_bounded_reals() -> FactorGraph:
    """A potential that is neither a table nor quadratic, with a parameter per factor."""

    def ripple(x: NDArray, y: NDArray, height: NDArray) -> NDArray:
        return height * np.cos(2 * x - y) - 0.1 * np.exp(x)

    variables = Variables.named({"x": interval(-2, 2), "y": interval(-1, 1)})
    potential = Function(ripple, 0, 2, np.array([[1.0], [0.3]]))
    group = FactorGroup(potential, np.array([[0, 1], [0, 1]], dtype=np.int32))
    return FactorGraph(variables, (group,))


def function_of_discrete_slots() -> FactorGraph:
    """A potential written as a formula over states."""
    return FactorGraph.build(
        {"a": categorical(3), "b": boolean, "c": categorical(3)},
        [
            (
                Function(lambda a, b: -0.5 * (a - 2 * b) ** 2, num_discrete=2),
                [["a", "b"], ["c", "b"]],
            ),
            (
                Function(lambda a, c: np.where(a == c, -np.inf, 0.1 * a * c), num_discrete=2),
                ["a", "c"],
            ),
        ],
    )


def function_of_both_kinds() -> FactorGraph:
    """A potential over a state and a real on an interval."""
    return FactorGraph.build(
        {"d": categorical(3), "x": interval(0, 4)},
        [
            (Function(lambda d, x: -np.abs(x - d) + 0.2 * d, 1, 1), ["d", "x"]),
            (ConditionalQuadratic.square(-0.1), ["x"]),
        ],
    )


def counted_factors() -> FactorGraph:
    """Factors that stand for three copies each."""
    variables = Variables.named({"a": boolean, "b": categorical(3), "x": real})
    table = Table.shared([[0.1, -0.2, 0.3], [0.0, 0.5, -np.inf]])
    pull = ConditionalQuadratic.gaussian([[0.0], [1.0]], [[[1.0]], [[3.0]]])
    return FactorGraph(
        variables,
        (
            FactorGroup(table, np.array([[0, 1]]), multiplicity=np.array([3.0])),
            FactorGroup(pull, np.array([[0, 2]]), multiplicity=np.array([3.0])),
        ),
    )


def copied_factors() -> FactorGraph:
    """The same as `counted_factors`, written out."""
    counted = counted_factors()
    return FactorGraph(
        counted.variables,
        tuple(FactorGroup(g.potential, np.repeat(g.scope, 3, axis=0)) for g in counted.groups),
    )


def _model(graph: Callable[[], FactorGraph], tags: str) -> ZooModel:
    return ZooModel(graph, frozenset(tags.split()))


ZOO = [
    _model(toy_hybrid_mln, "hybrid bounded loopy large"),
    _model(smallest_toy_hybrid_mln, "hybrid bounded tree"),
    _model(hard_clause, "discrete hard tree"),
    _model(friends_and_smokers, "discrete loopy"),
    _model(hidden_markov_model, "discrete tree evidence"),
    _model(mixed_cardinality_loop, "discrete loopy"),
    _model(one_state_categorical, "discrete tree"),
    _model(isolated_variables, "hybrid bounded tree"),
    _model(gaussian_chain, "gaussian tree"),
    _model(gaussian_loop, "gaussian loopy"),
    _model(relational_gaussian_model, "gaussian loopy bounded large"),
    _model(unbounded_relational_gaussian_model, "gaussian loopy evidence"),
    _model(kalman_chain, "gaussian tree evidence"),
    _model(switching_regime, "hybrid loopy"),
    _model(observed_mixture, "hybrid hard evidence"),
    _model(hard_constraint_keeps_a_real_in_place, "hybrid hard tree"),
    _model(distant_constraint_keeps_a_real_in_place, "hybrid hard tree"),
    _model(soft_evidence_on_a_real, "gaussian soft tree"),
    _model(soft_evidence_outside_the_interval, "gaussian soft bounded tree"),
    _model(truncated_gaussian, "gaussian bounded tree"),
    _model(coupled_bounded_reals, "hybrid bounded tree"),
    _model(bounded_and_unbounded_reals, "hybrid bounded tree"),
    _model(function_of_bounded_reals, "gaussian bounded function tree"),
    _model(function_of_discrete_slots, "discrete hard function loopy"),
    _model(function_of_both_kinds, "hybrid bounded function tree"),
    _model(counted_factors, "hybrid hard multiplicity tree"),
    _model(copied_factors, "hybrid hard tree"),
]
"""All models. `large` ones are too large for the oracle."""
