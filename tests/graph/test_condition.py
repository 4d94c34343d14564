"""Evidence absorbed into factors leaves the density of what is hidden as it was."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import oracle
import random_models
from hylift.errors import ImpossibleEvidenceError, ModelError
from hylift.graph import (
    Conditioned,
    Evidence,
    FactorGraph,
    FactorGroup,
    Part,
    Soft,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.inference import infer
from hylift.potentials import ConditionalQuadratic, Function, Table


@given(
    random_models.graphs(max_discrete=4, max_reals=4, functions="anywhere"), st.integers(0, 2**16)
)
def test_the_density_of_hidden_values_is_that_of_all_values(graph: FactorGraph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    hard = graph.evidence.is_hard
    num_states = graph.variables.num_states
    values = np.where(
        num_states > 0, rng.integers(0, np.maximum(num_states, 1)), rng.normal(size=len(num_states))
    )
    values[graph.evidence.variable[hard]] = graph.evidence.value[hard]
    expected = oracle.log_density(graph, values)

    try:
        result = graph.condition()
    except ImpossibleEvidenceError:
        assert expected == -np.inf
        return

    hidden = oracle.hidden_variables(graph)
    assert result.num_variables == len(hidden)
    assert result.log_density(values[hidden]) == pytest.approx(expected, rel=0, abs=1e-10)
    assert len(result.evidence) == 0
    names = graph.variables.names
    assert result.variables.names.render().to_pylist() == [names[v] for v in hidden]
    assert [result.variables.domain(i) for i in range(len(hidden))] == [
        graph.variables.domain(v) for v in hidden
    ]


@given(random_models.graphs(max_discrete=3, max_reals=3, functions="anywhere", hard=False))
def test_observing_in_two_stages_is_observing_at_once(graph: FactorGraph) -> None:
    first = Evidence.of(*(a[::2] for a in (graph.evidence.variable, graph.evidence.value)), 0.0)
    rest = graph.evidence.variable[1::2].tolist()
    names = graph.variables.names
    second = {
        names[v]: float(x) for v, x in zip(rest, graph.evidence.value[1::2].tolist(), strict=True)
    }
    bare = FactorGraph(graph.variables, graph.groups, log_constant=graph.log_constant)

    together = bare.observe(first).observe(second).condition()
    stages = bare.observe(first).condition().observe(second).condition()

    values = np.zeros(together.num_variables)
    assert stages.log_density(values) == pytest.approx(together.log_density(values), abs=1e-10)


def test_without_evidence_groups_are_merged_all_the_same() -> None:
    tables = [Table.shared([0.0, 1.0]), Table.shared([0.5, 0.0])]
    graph = FactorGraph.build({"a": boolean}, [(table, ["a"]) for table in tables])

    result = graph.condition()

    assert len(result.groups) == 1
    assert result.num_factors == 2
    assert result.log_density([1.0]) == graph.log_density([1.0])


def test_factors_become_smaller_and_share_groups() -> None:
    table = Table.shared(np.arange(6.0).reshape(2, 3))
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "c": categorical(3), "d": categorical(3)},
        [(table, [["a", "c"], ["b", "d"]]), (Table.shared([0.5, -0.5]), ["b"])],
    )

    result = graph.observe({"c": 2, "d": 1}).condition()

    assert result.num_variables == 2
    assert result.num_factors == 3
    assert len(result.groups) == 1
    assert result.groups[0].label == "factors 0 + factors 1"


def test_multiplicities_survive() -> None:
    variables = Variables.named({"a": boolean, "b": boolean})
    group = FactorGroup(Table.shared([[0.0, 1.0], [2.0, 3.0]]), [[0, 1]], multiplicity=[4.0])
    graph = FactorGraph(variables, (group,))

    half = graph.observe({"a": True}).condition()
    whole = graph.observe({"a": True, "b": True}).condition()

    assert half.groups[0].multiplicity.tolist() == [4.0]
    assert whole.groups == ()
    assert whole.log_constant == 12.0


def test_observed_states_reach_a_function_as_numbers() -> None:
    potential = Function(lambda d, x, y: d * x - y, num_discrete=1, num_reals=2)
    graph = FactorGraph.build(
        {"d": categorical(3), "x": interval(0, 9), "y": interval(0, 9)},
        [(potential, ["d", "x", "y"])],
    )

    result = graph.observe({"d": 2, "y": 1.5}).condition()

    assert result.log_density(np.array([4.0])) == pytest.approx(6.5)


def test_a_factor_of_many_slots_is_reduced_like_any_other() -> None:
    """Beyond eight slots, patterns of observed slots no longer fit a byte."""
    rng = np.random.default_rng(0)
    potential = Function(lambda *x: np.sin(sum((i + 1) * v for i, v in enumerate(x))), 0, 11)
    scope = np.stack([rng.permutation(14)[:11] for _ in range(30)])
    graph = FactorGraph(Variables.uniform(real, 14), (FactorGroup(potential, scope),))
    values = rng.normal(size=14)

    result = graph.observe(Evidence.of([0, 3, 4, 9], values[[0, 3, 4, 9]])).condition()

    hidden = np.delete(values, [0, 3, 4, 9])
    assert result.log_density(hidden) == pytest.approx(graph.log_density(values), abs=1e-10)


def test_evidence_that_breaks_a_hard_constraint_says_where() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "c": boolean},
        [
            (Table.shared([0.0, 0.0]), ["c"]),
            (Table.weighted(np.inf, [[0, 1], [1, 0]]), [["a", "b"], ["b", "c"]]),
        ],
    )

    with pytest.raises(ImpossibleEvidenceError) as refusal:
        graph.observe({"a": True, "b": True}).condition()

    assert str(refusal.value) == (
        "the evidence breaks a hard constraint: all variables of 1 factors of group 'factors 1' "
        "are observed, in a state that is impossible"
    )


def test_a_function_that_forbids_what_was_observed_says_so() -> None:
    forbid = Function(lambda x: np.where(x > 1, -np.inf, 0.0), num_reals=1)
    graph = FactorGraph.build({"x": real}, [(forbid, ["x"])])

    with pytest.raises(ImpossibleEvidenceError, match="the evidence breaks a hard constraint"):
        graph.observe({"x": 2.0}).condition()


def test_a_measurement_is_a_factor() -> None:
    graph = FactorGraph.build({"x": real}, [(ConditionalQuadratic.square(-1.0), ["x"])])

    result = graph.observe({"x": Soft(2.0, 0.5)}).condition()

    expected = -(1.3**2) + stats.norm(1.3, np.sqrt(0.5)).logpdf(2.0)
    assert result.num_variables == 1
    assert result.log_density(np.array([1.3])) == pytest.approx(expected, abs=1e-12)


def test_measurements_that_become_precise_tend_to_an_observation() -> None:
    graph = FactorGraph.build(
        {"on": boolean, "x": real, "y": real},
        [
            (ConditionalQuadratic.gaussian([[0.0], [1.0]], [[[1.0]], [[4.0]]]), ["on", "x"]),
            (ConditionalQuadratic.linear_gaussian([0.5], 2.0), ["y", "x"]),
        ],
    )
    exact = infer(graph.observe({"x": 1.5}))

    for var in (1e-2, 1e-4, 1e-6):
        soft = infer(graph.observe({"x": Soft(1.5, var)}))

        difference = soft.log_partition.value - exact.log_partition.value
        # Rounding of value² / var adds to an error that is proportional to var.
        assert abs(difference) < 2 * var + 1e-8
        assert soft.marginal("x").mean == pytest.approx(1.5, abs=2 * var)
        assert soft.marginal("y").mean == pytest.approx(exact.marginal("y").mean, abs=2 * var)
        assert soft.marginal("on").probs == pytest.approx(exact.marginal("on").probs, abs=2 * var)


def test_a_measurement_of_a_class_counts_once_per_member() -> None:
    graph = FactorGraph.build({"x": real}, [(ConditionalQuadratic.square(-1.0), ["x"])])
    variables = Variables(
        graph.variables.domains, graph.variables.domain_id, graph.variables.names, [3.0]
    )
    lifted = FactorGraph(variables, graph.groups).observe({"x": Soft(2.0, 0.5)})

    assert lifted.condition().groups[-1].multiplicity.tolist()[-1] == 3.0


# Where things come from


def joined_from(graph: FactorGraph, part: Part, hidden: np.ndarray) -> np.ndarray:
    """(factor, slot): what the scopes of a part should be, by ids in the graph before."""
    if part.source < 0:
        return graph.evidence.variable[part.factors][:, None]
    scope = graph.groups[part.source].scope[part.factors]
    is_hidden = np.isin(scope, hidden)
    kept = [slot for slot in range(scope.shape[1]) if slot not in part.slots]
    assert is_hidden[:, kept].all()
    assert not is_hidden[:, list(part.slots)].any()
    return scope[:, kept]


@given(random_models.graphs(max_discrete=4, max_reals=4, functions="anywhere"))
def test_every_conditioned_factor_tells_where_it_comes_from(graph: FactorGraph) -> None:
    try:
        result = Conditioned.of(graph)
    except ImpossibleEvidenceError:
        return

    assert result.hidden.tolist() == oracle.hidden_variables(graph)
    assert len(result.parts) == len(result.graph.groups)
    for group, parts in zip(result.graph.groups, result.parts, strict=True):
        expected = np.concatenate([joined_from(graph, part, result.hidden) for part in parts])
        assert result.hidden[group.scope].tolist() == expected.tolist()
    everything = [part for parts in result.parts for part in parts]
    for source, before in enumerate(graph.groups):
        kept = [part.factors for part in everything if part.source == source]
        touched = np.isin(before.scope, result.hidden).any(axis=1)
        found = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *kept]))
        assert found.tolist() == np.flatnonzero(touched).tolist()


def test_a_part_has_the_same_slots_observed_throughout() -> None:
    pair = Table.shared(np.arange(4.0).reshape(2, 2))
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "c": boolean},
        [
            (Table.shared([0.0, 1.0]), ["b"]),
            (pair, [["a", "b"], ["b", "c"], ["b", "a"], ["a", "c"]]),
        ],
    )

    result = Conditioned.of(graph.observe({"a": True}))

    described = [[(p.source, p.factors.tolist(), p.slots) for p in parts] for parts in result.parts]
    assert described == [[(0, [0], ()), (1, [0, 3], (0,)), (1, [2], (1,))], [(1, [1], ())]]
    assert result.hidden.tolist() == [1, 2]
    assert result.graph.groups[0].scope.tolist() == [[0], [0], [1], [0]]
    values = result.graph.groups[0].log_values(np.array([0.0, 1.0]))
    assert values.tolist() == [0.0, 2.0, 3.0, 1.0]


def test_measurements_come_from_the_evidence() -> None:
    graph = FactorGraph.build(
        {"x": real, "y": real, "z": real},
        [(ConditionalQuadratic.square(-1.0), [["x"], ["y"], ["z"]])],
    ).observe({"z": Soft(1.0, 0.5), "x": 0.0, "y": Soft(2.0, 0.5)})

    result = Conditioned.of(graph)

    (parts,) = result.parts
    assert [(p.source, p.factors.tolist(), p.slots) for p in parts] == [
        (0, [1, 2], ()),
        (-1, [0, 2], ()),
    ]
    assert result.graph.groups[0].scope.tolist() == [[0], [1], [1], [0]]


def test_what_no_evidence_touches_is_not_copied() -> None:
    scope = np.array([[0, 1], [1, 2]], dtype=np.int32)
    group = FactorGroup(Table.shared([[0.0, 1.0], [2.0, 3.0]]), scope)
    graph = FactorGraph(Variables.uniform(boolean, 3), (group,))

    result = Conditioned.of(graph)

    assert result.graph.groups[0] is group
    assert result.graph.variables is graph.variables
    assert result.hidden.tolist() == [0, 1, 2]
    assert [part.factors.tolist() for part in result.parts[0]] == [[0, 1]]


def test_a_group_without_factors_is_dropped() -> None:
    group = FactorGroup(Table.shared([0.0, 1.0]), np.zeros((0, 1), dtype=np.int32))
    graph = FactorGraph(Variables.uniform(boolean, 2), (group,))

    for result in (Conditioned.of(graph), Conditioned.of(graph.observe({"x0": True}))):
        assert result.graph.groups == ()
        assert result.parts == ()


def test_constants_too_large_to_add_are_refused() -> None:
    graph = FactorGraph.build({"a": boolean}, [(Table.shared([0.0, 1e308]), [["a"], ["a"]])])

    with (
        np.errstate(over="ignore"),
        pytest.raises(ModelError, match="the constant of a graph must be finite, not inf"),
    ):
        graph.observe({"a": True}).condition()


@pytest.mark.parametrize("observed", [[63], [64], [69], [0, 62, 63, 64]])
def test_any_slot_of_a_wide_factor_may_be_observed(observed: list[int]) -> None:
    potential = ConditionalQuadratic.shared(-np.eye(70), np.arange(70.0))
    names = [f"x{i}" for i in range(70)]
    graph = FactorGraph.build(dict.fromkeys(names, real), [(potential, names)])
    values = np.linspace(-1, 1, 70)

    hidden = graph.observe({f"x{i}": values[i] for i in observed}).condition()

    left = np.delete(values, observed)
    assert hidden.groups[0].arity == 70 - len(observed)
    assert hidden.log_density(left) == pytest.approx(graph.log_density(values), abs=1e-12)


def test_a_conditioned_graph_is_returned_as_it_is() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "x": real},
        [(Table.shared([0.0, 1.0]), ["a"]), (ConditionalQuadratic.square(-1.0), ["x"])],
    )

    once = graph.observe({"a": True}).condition()

    assert once.condition() is once
    assert graph.condition() is graph
    assert Conditioned.of(graph).hidden.tolist() == [0, 1]
