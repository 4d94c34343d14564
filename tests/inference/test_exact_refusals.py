"""What exact inference refuses, and in which words."""

import itertools

import numpy as np
import pytest

from hylift.errors import (
    DivergentModelError,
    ImpossibleEvidenceError,
    IntractableError,
    ModelError,
    UnsupportedError,
)
from hylift.graph import (
    FactorGraph,
    FactorGroup,
    Names,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.grounding import ground
from hylift.inference import Exact, infer
from hylift.language import parse
from hylift.potentials import ConditionalQuadratic, Function, Table

SQUARE = ConditionalQuadratic.square(-0.5)


def complete_graph(num_variables: int) -> FactorGraph:
    pairs = np.array(list(itertools.combinations(range(num_variables), 2)))
    variables = Variables.uniform(boolean, num_variables)
    return FactorGraph(variables, (FactorGroup(Table.shared([[0.5, 0], [0, 0.5]]), pairs),))


@pytest.mark.parametrize("task", ["logz", "marginals"])
def test_too_wide_a_graph_is_refused_with_its_width(task: str) -> None:
    graph = complete_graph(12)

    with pytest.raises(IntractableError) as refusal:
        infer(graph, Exact(max_entries=2**11), tasks=[task], rewrite=False)

    assert "elimination of these 12 variables has width 11" in str(refusal.value)
    assert "2^12.0 entries" in str(refusal.value)
    assert "The limit is 2.05e+03 entries" in str(refusal.value)


def test_a_graph_as_wide_as_the_limit_is_solved() -> None:
    graph = complete_graph(12)

    posterior = infer(graph, Exact(max_entries=2**12), rewrite=False)

    assert posterior.marginal("x3").probs == pytest.approx([0.5, 0.5], abs=1e-12)


def test_reals_that_depend_on_too_many_states_are_refused_by_name() -> None:
    switches, heights = [f"on{i}" for i in range(12)], [f"height{i}" for i in range(12)]
    pairs = [[one, other] for one in heights for other in heights if one < other]
    graph = FactorGraph.build(
        dict.fromkeys(switches, boolean) | dict.fromkeys(heights, real),
        [
            (SQUARE, [[height] for height in heights]),
            (SQUARE.times([0, 1]), [list(pair) for pair in zip(switches, heights, strict=True)]),
            (ConditionalQuadratic.squared_distance(1.0, [1, -1]), pairs),
        ],
    )

    with pytest.raises(IntractableError) as refusal:
        infer(graph, Exact(max_entries=2**12), rewrite=False)

    assert "12 coupled reals ('height" in str(refusal.value)
    assert "depend on 12 discrete variables" in str(refusal.value)
    assert "2^12.0 joint states" in str(refusal.value)


def test_too_large_a_grid_is_refused_with_its_size() -> None:
    names = ["x", "y", "z"]
    graph = FactorGraph.build(
        dict.fromkeys(names, interval(0, 1)), [(Function(lambda x, y, z: x * y * z, 0, 3), names)]
    )

    with pytest.raises(IntractableError, match="entries for 1 factors with 3 bounded reals"):
        infer(graph, Exact(max_entries=10_000))


def test_a_divergent_model_names_the_state_and_the_variables() -> None:
    graph = FactorGraph.build(
        {"mode": categorical(["tight", "loose"]), "x": real, "y": real},
        [
            (SQUARE.times([1, 0]), ["mode", "x"]),
            (ConditionalQuadratic.squared_distance(1.0, [1, -1]), ["x", "y"]),
        ],
    )

    with pytest.raises(DivergentModelError) as refusal:
        infer(graph, Exact())

    text = str(refusal.value)
    first, other = ("x", "y") if "improper in 'x'" in text else ("y", "x")
    assert text == (
        f"the model cannot be normalised: the density is improper in '{first}' where mode is loose "
        f"('{first}' is coupled to {other}): give it bounds or add a rule such as "
        f"'-0.01 {first}^2'"
    )


def test_a_real_that_nothing_holds_is_named() -> None:
    graph = FactorGraph.build({"x": real, "free": real}, [(SQUARE, ["x"])])

    with pytest.raises(DivergentModelError, match="improper in 'free'"):
        infer(graph, Exact())


def test_a_slope_without_end_has_no_most_probable_point() -> None:
    graph = FactorGraph.build({"x": real}, [(ConditionalQuadratic.shared([[0.0]], [1.0]), ["x"])])

    with pytest.raises(DivergentModelError, match=r"exact MAP cannot be found: .* in 'x'"):
        infer(graph, Exact(), tasks=["map"])


def test_a_flat_state_does_not_stand_in_the_way_of_the_most_probable_point() -> None:
    near_two = ConditionalQuadratic.squared_distance(1.0, [1.0], 2.0).times([0, 1])
    graph = FactorGraph.build(
        {"on": boolean, "x": real},
        [(near_two, ["on", "x"]), (Table.shared([0.0, 1.0]), ["on"])],
    )

    found = infer(graph, Exact(), tasks=["map"]).map()

    assert found.to_dict() == {"on": "true", "x": 2.0}
    assert found.energy == -1.0


def test_a_lifted_graph_is_refused() -> None:
    variables = Variables((boolean,), [0, 0], Names.numbered(2), [3.0, 1.0])
    graph = FactorGraph(variables, (FactorGroup(Table.shared([0.0, 1.0]), [[0], [1]]),))

    with pytest.raises(UnsupportedError, match="exact inference needs a ground graph"):
        infer(graph, Exact())


def test_the_largest_value_of_a_function_of_an_unbounded_real_is_refused_by_name() -> None:
    graph = FactorGraph.build({"x": real}, [(Function(lambda x: -np.abs(x), num_reals=1), ["x"])])

    with pytest.raises(
        UnsupportedError, match="cannot integrate over 'x': it is not bounded on both sides"
    ):
        infer(graph, Exact(), tasks=["map"])


def test_a_half_bounded_real_far_from_its_bound_is_a_gaussian() -> None:
    graph = FactorGraph.build(
        {"x": interval(0, np.inf)}, [(ConditionalQuadratic.gaussian([20.0], [[1.0]]), ["x"])]
    )

    posterior = infer(graph, Exact())

    assert posterior.log_partition.value == pytest.approx(0.0, abs=1e-10)
    assert posterior.marginal("x").mean == pytest.approx(20.0)


@pytest.mark.parametrize("task", ["logz", "map"])
def test_contradicting_constraints_leave_no_state(task: str) -> None:
    either = Table.weighted(np.inf, [[0, 1], [1, 0]])
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "c": boolean},
        [(either, [["a", "b"], ["b", "c"], ["a", "c"]])],
    )

    with pytest.raises(ImpossibleEvidenceError, match="no joint state is possible"):
        infer(graph, Exact(), tasks=[task])


def test_a_function_that_returns_nan_is_quoted() -> None:
    def root(x: np.ndarray) -> np.ndarray:
        return np.where(x < 0, np.nan, x)

    graph = FactorGraph.build({"x": interval(-1, 1)}, [(Function(root, num_reals=1), ["x"])])

    with pytest.raises(ModelError, match=r"the potential 'root' returned nan at \[-0\.9"):
        infer(graph, Exact())


def test_messages_that_would_not_fit_together_are_refused() -> None:
    """Twelve cliques of eight variables: no table is large, but there are many."""
    groups = [[f"x{8 * g + i}" for i in range(8)] for g in range(12)]
    agree = Table.shared(np.eye(2))
    pairs = [[a, b] for group in groups for a, b in itertools.combinations(group, 2)]
    graph = FactorGraph.build(
        dict.fromkeys([name for group in groups for name in group], boolean), [(agree, pairs)]
    )

    with pytest.raises(IntractableError, match="its messages together"):
        infer(graph, Exact(max_entries=2**9), rewrite=False)
    assert infer(graph, Exact(max_entries=2**12), rewrite=False).log_partition.kind == "exact"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"tolerance": 0.0}, "tolerance must be at least 1e-13, not 0.0"),
        ({"tolerance": np.nan}, "tolerance must be at least 1e-13, not nan"),
        ({"max_entries": 0}, "max_entries must be at least 1, not 0"),
    ],
)
def test_settings_without_meaning_are_refused(settings: dict[str, float], text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        Exact(**settings)


@pytest.mark.parametrize("task", ["logz", "marginals", "map"])
@pytest.mark.parametrize("weight", [1e291, 1e300, 8e307, -8e307])
def test_finite_weights_too_large_to_compute_with_are_quoted(weight: float, task: str) -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean},
        [
            (Table.weighted(weight, np.eye(2)), ["a", "b"]),
            (Table.weighted(weight / 4, ~np.eye(2, dtype=bool)), ["a", "b"]),
        ],
    )

    with pytest.raises(UnsupportedError) as refusal:
        infer(graph, Exact(), tasks=[task])

    assert f"a factor of 'a', 'b' has {abs(weight):.3g}." in str(refusal.value)
    assert "weight inf" in str(refusal.value)


def test_weights_that_are_too_large_once_observed_are_quoted() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean}, [(Table.weighted(1e300, np.eye(2)), ["a", "b"])] * 3
    )

    with pytest.raises(UnsupportedError, match=r"what is observed add up to 3e[+]300"):
        infer(graph.observe({"a": True, "b": True}), Exact())


def test_large_weights_within_the_limit_decide_everything() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean},
        [(Table.weighted(1e289, np.eye(2)), ["a", "b"]), (Table.shared([0.0, 1e288]), ["b"])],
    )

    posterior = infer(graph, Exact())

    assert posterior.marginal("a").probs == pytest.approx([0, 1], abs=0)
    assert posterior.map()["a"] == "true"
    assert posterior.log_partition.value == pytest.approx(1.1e289)


@pytest.mark.parametrize("task", ["logz", "map"])
def test_numbers_that_only_reals_make_too_large_are_said_to_be_so(task: str) -> None:
    steep = ConditionalQuadratic.shared([[-1.0]], [1e160]).times([0, 1])
    graph = FactorGraph.build({"on": boolean, "x": real}, [(steep, ["on", "x"]), (SQUARE, ["x"])])

    with pytest.raises(ModelError, match=r"^'x' has a mean of about .* give it another unit$"):
        infer(graph, Exact(), tasks=[task])


SUMS_OF_EXPONENTIALS = """
    thing = {a, b, c, d}
    x(thing): real
    total: real
    normal(x(i) | 5, 4)
    normal(total | SUM i: exp(x(i)), 1)
"""


def test_densities_that_nodes_do_not_see_are_not_called_impossible() -> None:
    graph = ground(parse(SUMS_OF_EXPONENTIALS), {"total": 18.0})

    with pytest.raises(IntractableError, match="at all nodes of 4 reals"):
        infer(graph, Exact())


def test_a_contradiction_beside_reals_on_nodes_is_still_one() -> None:
    model = parse("""
        A: boolean
        B: boolean
        v: real[0.1, 10]
        y: real
        A v B.
        !A.
        !B.
        normal(y | 0, v + A)
    """)

    with pytest.raises(ImpossibleEvidenceError, match="no joint state is possible"):
        infer(ground(model, {"y": 1.0}), Exact())
