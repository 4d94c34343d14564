"""States that another state beats, whatever the other variables are."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

import oracle
import random_models
import zoo
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph, boolean, categorical, real
from hylift.inference import Exact, infer
from hylift.inference.exact.maximum.dominated import without_dominated
from hylift.potentials import ConditionalQuadratic, Function, Table

DISTANCE = ConditionalQuadratic.squared_distance(1.0, [1.0, -1.0])


def states_left(graph: FactorGraph) -> dict[str, float]:
    """The variables that are fixed, by name."""
    reduced = without_dominated(graph)
    fixed = np.setdiff1d(np.arange(graph.num_variables), reduced.left)
    return {graph.variables.names[int(v)]: float(reduced.fixed[v]) for v in fixed}


@given(random_models.graphs(max_discrete=4))
def test_dropping_dominated_states_keeps_the_least_energy(graph: FactorGraph) -> None:
    expected = oracle.solve(graph).map_energy

    try:
        found = oracle.solve(without_dominated(graph.condition()).graph).map_energy
    except ImpossibleEvidenceError:
        found = np.inf

    assert found == pytest.approx(expected, rel=0, abs=1e-9)


def test_a_state_that_is_never_worse_wins_and_equal_states_leave_the_lowest() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": categorical(3), "free": categorical(4)},
        [(Table.shared([[0.0, 1.0, 1.0], [2.0, 3.0, 3.0]]), ["a", "b"])],
    )

    assert states_left(graph) == {"a": 1, "b": 1, "free": 0}


def test_a_loss_in_one_factor_may_be_made_up_for_in_another() -> None:
    agree = Table.shared([[0.5, 0.0], [0.0, 0.5]])
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean},
        [(agree, ["a", "b"]), (Table.shared([0.0, 0.6]), ["a"])],
    )

    assert states_left(graph) == {"a": 1, "b": 1}


def test_states_that_depend_on_each_other_stay() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean}, [(Table.shared([[0.5, 0.0], [0.0, 0.4]]), ["a", "b"])]
    )

    assert states_left(graph) == {}


def test_a_dropped_state_no_longer_speaks_for_others() -> None:
    """State 2 of a is impossible, and only with it b would rather be false."""
    graph = FactorGraph.build(
        {"a": categorical(3), "b": boolean, "c": boolean},
        [
            (Table.shared([0.0, 0.0, -np.inf]), ["a"]),
            (Table.shared([[0.0, 1.0], [0.0, 2.0], [9.0, 0.0]]), ["a", "b"]),
            (Table.shared([[0.0, 5.0], [5.0, 0.0], [0.0, 0.0]]), ["a", "c"]),
            (Table.shared([0.0, 0.1]), ["c"]),
        ],
    )

    assert states_left(graph)["b"] == 1


def test_a_chain_of_implications_is_followed_to_its_end() -> None:
    chain = [f"b{i}" for i in range(20)]
    implies = Table.weighted(np.inf, zoo.IMPLIES)
    graph = FactorGraph.build(
        dict.fromkeys(chain, boolean),
        [
            (implies, list(itertools.pairwise(chain))),
            (Table.weighted(np.inf, [0, 1]), ["b0"]),
            (Table.weighted(-1.0, [0, 1]), [[name] for name in chain]),
        ],
    )

    assert states_left(graph) == dict.fromkeys(chain, 1)


@pytest.mark.parametrize(
    ("potential", "fixed"),
    [
        (DISTANCE.times([0, 1]), {"on": 0}),
        (DISTANCE.times([-1, 0]), {"on": 0}),
        # Three reals of one direction, with a target: the least difference is zero but for digits.
        (
            ConditionalQuadratic.squared_distance(0.7, [1.0, -2.0, -1.0], 1.1).times([0, 1]),
            {"on": 0},
        ),
        (ConditionalQuadratic.squared_distance(3.0, [3.0, 5.0], 7.0).times([0, 1]), {"on": 0}),
        # The same with coefficients whose products are rounded: nothing is flat any more.
        (ConditionalQuadratic.squared_distance(0.7, [0.1, 0.3, -0.7], 1.1).times([0, 1]), {}),
        # Better than nothing near the diagonal.
        (
            ConditionalQuadratic.switch(
                [
                    ConditionalQuadratic.shared(np.zeros((2, 2)), [0.0, 0.0]),
                    ConditionalQuadratic.shared(DISTANCE.A[0], [0.0, 0.0], 0.1),
                ]
            ),
            {},
        ),
        # A slope along which the distance is flat.
        (
            ConditionalQuadratic.switch(
                [
                    ConditionalQuadratic.shared(np.zeros((2, 2)), [0.0, 0.0]),
                    ConditionalQuadratic.shared(DISTANCE.A[0], [1e-3, 0.0], -9.0),
                ]
            ),
            {},
        ),
        # Saddles have no least value.
        (ConditionalQuadratic.product(1.0).times([0, 1]), {}),
    ],
)
def test_states_of_a_quadratic_are_compared_over_all_reals(
    potential: ConditionalQuadratic, fixed: dict[str, float]
) -> None:
    reals = [f"x{i}" for i in range(potential.num_reals)]
    graph = FactorGraph.build(
        {"on": boolean} | dict.fromkeys(reals, real), [(potential, ["on", *reals])]
    )

    assert states_left(graph) == fixed


# Near-ties


def test_a_slope_that_is_steeper_by_the_last_digits_wins() -> None:
    """Where x is, near 500000, these digits are worth 0.4."""
    slopes = [ConditionalQuadratic.shared([[-1.0]], [1e6 * (1 + more)]) for more in (0, 8e-13)]
    others = [f"b{i}" for i in range(6)]
    pairs = list(itertools.combinations(others, 2))
    agree = Table(np.random.default_rng(0).normal(size=(len(pairs), 2, 2)))
    graph = FactorGraph.build(
        {"d": boolean, "x": real} | dict.fromkeys(others, boolean),
        [(ConditionalQuadratic.switch(slopes), ["d", "x"]), (agree, pairs)],
    )

    by_tables, beyond = (
        infer(graph, method, tasks=["map"]).map() for method in (Exact(), Exact(max_entries=8))
    )

    assert by_tables["d"] == beyond["d"] == "true"
    assert beyond.energy == by_tables.energy
    assert beyond.kind == "exact"


@pytest.mark.parametrize("change", [1e-300, 1e-17, 1e-13])
@pytest.mark.parametrize("where", ["A", "b"])
def test_whatever_is_not_exactly_flat_is_endless(where: str, change: float) -> None:
    first = {"A": np.zeros((2, 2)), "b": np.zeros(2), "c": np.array(0.0)}
    second = {key: value.copy() for key, value in first.items()}
    second[where].reshape(-1)[0] = change  # the first real: better far away
    stacked = (np.stack([first[key], second[key]])[None] for key in "Abc")
    graph = FactorGraph.build(
        {"on": boolean, "x": real, "y": real},
        [(ConditionalQuadratic(*stacked), ["on", "x", "y"]), (Table.shared([9.0, 0.0]), ["on"])],
    )

    assert states_left(graph) == {}


def test_rounded_constants_are_forgiven_and_counted() -> None:
    targets = np.linspace(0.1, 9.9, 99)
    squares = ConditionalQuadratic.squared_distance(0.3, [1.0], targets).times([0, 1])
    switches = [f"on{i}" for i in range(len(targets))]
    graph = FactorGraph.build(
        dict.fromkeys(switches, boolean) | {"x": real},
        [(squares, [[switch, "x"] for switch in switches])],
    )

    reduced = without_dominated(graph)

    assert states_left(graph) == dict.fromkeys(switches, 0)
    assert 0 < reduced.forgiven < 1e-11


def test_an_answer_that_hangs_on_rounded_constants_is_an_estimate() -> None:
    """Of 10¹⁶ the last digit is 2: whether this square reaches above 0 cannot be told."""
    far = ConditionalQuadratic.squared_distance(0.3, [1.0], 1e8 / 3).times([0, 1])
    graph = FactorGraph.build({"on": boolean, "x": real}, [(far, ["on", "x"])])

    for method in (None, Exact(max_entries=2)):
        assert infer(graph, method, tasks=["map"]).map().kind == "estimate"


def near_ties(rng: np.random.Generator, num_booleans: int, num_reals: int) -> FactorGraph:
    """Booleans between whose states all coefficients differ in the last digits, if at all."""
    reals = [f"x{i}" for i in range(num_reals)]
    rules: list[tuple[ConditionalQuadratic, list[str]]] = [
        (ConditionalQuadratic.square(-1.0), [name]) for name in reals
    ]
    for number in range(num_booleans):
        target = rng.choice([0.0, 1.0, 3.3]) * 10.0 ** rng.integers(0, 7)
        near = ConditionalQuadratic.squared_distance(
            rng.choice([0.3, 1.0]), rng.integers(-2, 3, num_reals).astype(float), target
        )
        digits = 10.0 ** -rng.integers(12, 17, 3) * rng.integers(-2, 3, 3)
        along = np.diag(1 + digits[0] * rng.integers(0, 2, num_reals))
        far = ConditionalQuadratic(
            along @ near.A @ along, near.b * (1 + digits[1]), near.c * (1 + digits[2])
        )
        rules.append((ConditionalQuadratic.switch([near, far]), [f"b{number}", *reals]))
    names = [f"b{number}" for number in range(num_booleans)]
    return FactorGraph.build(dict.fromkeys(names, boolean) | dict.fromkeys(reals, real), rules)


def exact_maximum(graph: FactorGraph, states: tuple[int, ...]) -> Fraction:
    """The largest log-density with these states of the first variables, in rational numbers."""
    num_reals = graph.num_variables - len(states)
    form = np.full((num_reals + 1, num_reals + 1), Fraction(0))
    for group in graph.groups:
        potential = group.potential
        assert isinstance(potential, ConditionalQuadratic)
        for scope, row in zip(group.scope.tolist(), group.row.tolist(), strict=True):
            at = (row, *(states[v] for v in scope if v < len(states)))
            inner = [v - len(states) for v in scope if v >= len(states)]
            for i, x in enumerate(inner):
                form[x, -1] += Fraction(potential.b[at][i]) / 2
                for j, y in enumerate(inner):
                    form[x, y] += Fraction(potential.A[at][i, j])
            form[-1, -1] += Fraction(float(potential.c[at]))
    form[-1, :-1] = form[:-1, -1]
    for _ in range(num_reals):
        form = form[1:, 1:] - np.outer(form[0, 1:], form[0, 1:]) / form[0, 0]
    return Fraction(form[0, 0])


@pytest.mark.parametrize("seed", range(150))
def test_no_better_state_is_dropped_in_near_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_booleans = 3
    graph = near_ties(rng, num_booleans, num_reals=int(rng.integers(1, 4)))

    reduced = without_dominated(graph)

    open_states = [
        [0, 1] if v in reduced.left else [int(reduced.fixed[v])] for v in range(num_booleans)
    ]
    kept = max(exact_maximum(graph, states) for states in itertools.product(*open_states))
    best = max(exact_maximum(graph, s) for s in itertools.product([0, 1], repeat=num_booleans))
    assert best - kept <= reduced.forgiven


def test_functions_keep_all_states() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": categorical(3)},
        [(Function(lambda a, b: a + b, num_discrete=2), ["a", "b"])],
    )

    assert states_left(graph) == {}


def test_an_impossible_state_is_dropped_whatever_else_speaks_for_it() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean},
        [
            (Table.shared([0.0, 7.0]), ["a"]),
            (Table.shared([[0.0, 0.0], [-np.inf, -np.inf]]), ["a", "b"]),
        ],
    )

    assert states_left(graph) == {"a": 0, "b": 0}
