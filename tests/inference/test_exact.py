"""Exact inference against enumeration, dense algebra, quadrature and published digits."""

import csv
import itertools
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import oracle
import random_models
import zoo
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import (
    Evidence,
    FactorGraph,
    FactorGroup,
    Names,
    Variables,
    boolean,
    categorical,
    real,
)
from hylift.inference import Exact, infer
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Table

SMALL = [model for model in zoo.ZOO if "large" not in model.tags]
EVERYTHING = ("marginals", "logz", "map")


def assert_agrees(posterior: Posterior, expected: oracle.Answer, tolerance: float) -> None:
    marginals = posterior.all_marginals
    assert posterior.log_partition.value == pytest.approx(expected.log_z, rel=0, abs=tolerance)
    for variable, probs in expected.probs.items():
        np.testing.assert_allclose(marginals[variable].probs, probs, rtol=0, atol=tolerance)
    for variable, mean in expected.mean.items():
        spread = max(1.0, expected.var[variable])
        assert marginals[variable].mean == pytest.approx(mean, rel=0, abs=tolerance * spread)
        assert marginals[variable].var == pytest.approx(
            expected.var[variable], rel=0, abs=10 * tolerance * spread
        )


def assert_same_answers(actual: Posterior, expected: Posterior, tolerance: float = 1e-10) -> None:
    """The same log Z and marginals, variable by variable in the order of names."""
    assert actual.log_partition.value == pytest.approx(
        expected.log_partition.value, rel=0, abs=tolerance
    )
    for name in expected.variables.names.render().to_pylist():
        one, other = actual.marginal(name), expected.marginal(name)
        if hasattr(other, "probs"):
            np.testing.assert_allclose(one.probs, other.probs, rtol=0, atol=tolerance)
        else:
            assert one.mean == pytest.approx(other.mean, rel=0, abs=tolerance)
            assert one.var == pytest.approx(other.var, rel=0, abs=tolerance)


@cache
def solved(model: zoo.ZooModel) -> oracle.Answer:
    return oracle.solve(model.graph())


@pytest.mark.parametrize("model", SMALL, ids=str)
def test_answers_equal_those_of_the_oracle(model: zoo.ZooModel) -> None:
    graph = model.graph()
    # Quadrature is only good to about 1e-8 in two dimensions.
    tolerance = 1e-6 if oracle.numerical_reals(graph) else 1e-10

    posterior = infer(graph)

    assert_agrees(posterior, solved(model), tolerance)
    of_reals = "function" in model.tags and "discrete" not in model.tags
    assert posterior.log_partition.kind == ("estimate" if of_reals else "exact")
    assert posterior.solution.result == "converged"


@pytest.mark.parametrize("model", SMALL, ids=str)
def test_the_map_assignment_has_the_least_energy(model: zoo.ZooModel) -> None:
    graph = model.graph()

    best = infer(graph, tasks=["map"]).map()

    assert best.energy == pytest.approx(solved(model).map_energy, rel=0, abs=1e-7)
    assert oracle.log_density(graph, best.values) == pytest.approx(-best.energy, rel=0, abs=1e-10)
    observed = graph.evidence.variable[graph.evidence.is_hard]
    assert best.observed.nonzero()[0].tolist() == sorted(observed.tolist())
    reals = graph.variables.num_states == 0
    assert (best.values[reals] >= graph.variables.lower[reals]).all()
    assert (best.values[reals] <= graph.variables.upper[reals]).all()


@given(random_models.graphs())
def test_random_hybrid_graphs_agree_with_enumeration_and_dense_algebra(graph: FactorGraph) -> None:
    expected = oracle.solve(graph)

    if expected.log_z == -np.inf:
        with pytest.raises(ImpossibleEvidenceError):
            infer(graph)
        return
    posterior = infer(graph, tasks=EVERYTHING)

    assert_agrees(posterior, expected, 1e-10)
    assert posterior.map().energy == pytest.approx(expected.map_energy, rel=0, abs=1e-10)
    assert posterior.map().kind == "exact"


@given(random_models.graphs(max_reals=2, max_bounded=1, functions="of bounded reals"))
@settings(max_examples=25)
def test_random_bounded_graphs_agree_with_quadrature(graph: FactorGraph) -> None:
    expected = oracle.solve(graph)

    if expected.log_z == -np.inf:
        with pytest.raises(ImpossibleEvidenceError):
            infer(graph)
        return
    posterior = infer(graph, tasks=EVERYTHING)

    assert_agrees(posterior, expected, 1e-8)
    assert posterior.map().energy == pytest.approx(expected.map_energy, rel=0, abs=1e-6)


def test_the_toy_model_has_the_published_digits() -> None:
    posterior = infer(zoo.toy_hybrid_mln())

    assert posterior.log_partition.value == pytest.approx(13.344035214554, rel=0, abs=1e-10)
    for thing in ("posA(a0)", "posA(a1)"):
        marginal = posterior.marginal(thing)
        assert [marginal.mean, marginal.var] == pytest.approx([-0.486916, 6.013026], abs=5e-7)
        assert marginal.mode == pytest.approx(-0.002877, abs=5e-7)
    for thing in ("posB(b0)", "posB(b1)", "posB(b2)"):
        marginal = posterior.marginal(thing)
        assert [marginal.mean, marginal.var] == pytest.approx([1.637380, 1.150311], abs=5e-7)
        assert marginal.mode == pytest.approx(1.656191, abs=5e-7)


def test_either_of_two_is_true_in_two_of_three_worlds() -> None:
    posterior = infer(zoo.hard_clause())

    assert posterior.marginal("H").prob("true") == pytest.approx(2 / 3, abs=1e-12)


@pytest.mark.parametrize(
    ("file", "recession", "sum_of_means", "sum_of_variances"),
    [
        ("evidence_0.csv", 0.164827734, 947.098842, 1440.539962),
        ("evidence_1.csv", 0.147604920, 244.767909, 1566.370629),
    ],
)
def test_the_recession_model_has_the_published_digits(
    data_dir: Path, file: str, recession: float, sum_of_means: float, sum_of_variances: float
) -> None:
    graph = zoo.relational_gaussian_model(100, 5).observe(read_atoms(data_dir / "rgm" / file))

    posterior = infer(graph)

    hidden = posterior.marginals()
    assert posterior.marginal("recession").mean == pytest.approx(recession, rel=0, abs=1e-9)
    assert np.sum(hidden["mean"].to_numpy()) == pytest.approx(sum_of_means, rel=0, abs=1e-6)
    assert np.sum(hidden["std"].to_numpy() ** 2) == pytest.approx(sum_of_variances, rel=0, abs=1e-6)


def read_atoms(path: Path) -> dict[str, float]:
    """Evidence by atom, from columns predicate, arg1, arg2, value."""
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    observed = {}
    for row in rows:
        arguments = ",".join(word for word in (row["arg1"], row["arg2"]) if word)
        atom = f"{row['predicate']}({arguments})" if arguments else row["predicate"]
        observed[atom] = float(row["value"])
    return observed


@pytest.mark.parametrize("model", SMALL, ids=str)
def test_reordering_variables_and_factors_changes_nothing(model: zoo.ZooModel) -> None:
    graph = model.graph()

    actual = infer(reordered(graph, np.random.default_rng(5)))

    assert_same_answers(actual, infer(graph), tolerance=1e-9)


def reordered(graph: FactorGraph, rng: np.random.Generator) -> FactorGraph:
    """The same model with its variables, groups and factors in another order."""
    order = rng.permutation(graph.num_variables)
    place = np.argsort(order)
    names = graph.variables.names.render().to_pylist()
    variables = Variables.named({names[v]: graph.variables.domain(int(v)) for v in order})
    groups = []
    for group in graph.groups:
        factors = rng.permutation(len(group))
        groups.append(
            FactorGroup(
                group.potential,
                place[group.scope[factors]].reshape(group.scope.shape),
                group.row[factors],
                group.multiplicity[factors],
            )
        )
    evidence = graph.evidence
    moved = Evidence.of(place[evidence.variable], evidence.value, evidence.var)
    return FactorGraph(variables, tuple(reversed(groups)), moved, graph.log_constant)


@pytest.mark.parametrize("model", SMALL, ids=str)
def test_renaming_variables_changes_nothing(model: zoo.ZooModel) -> None:
    graph = model.graph()
    variables = Variables(
        graph.variables.domains,
        graph.variables.domain_id,
        Names.numbered(graph.num_variables, "renamed"),
        graph.variables.multiplicity,
    )
    renamed = FactorGraph(variables, graph.groups, graph.evidence, graph.log_constant)

    actual, expected = infer(renamed), infer(graph)

    assert actual.log_partition.value == expected.log_partition.value
    assert answer_bytes(actual) == answer_bytes(expected)


@pytest.mark.parametrize("shift", [-5000.0, 0.75, 5000.0])
def test_a_constant_added_to_a_potential_changes_only_log_z(shift: float) -> None:
    graph = zoo.counted_factors()
    table = graph.groups[0]
    shifted_table = FactorGroup(
        Table(table.potential.log_table + shift), table.scope, table.row, table.multiplicity
    )
    shifted = FactorGraph(graph.variables, (shifted_table, *graph.groups[1:]))

    actual, expected = infer(shifted), infer(graph)

    assert actual.log_partition.value == pytest.approx(
        expected.log_partition.value + 3 * shift, rel=1e-14
    )
    assert actual.marginal("b").probs == pytest.approx(expected.marginal("b").probs, abs=1e-11)
    assert actual.marginal("x").mean == pytest.approx(expected.marginal("x").mean, abs=1e-11)


def test_a_multiplicity_of_three_equals_three_copies() -> None:
    assert_same_answers(infer(zoo.counted_factors()), infer(zoo.copied_factors()))


@pytest.mark.parametrize("size", [-5000.0, 5000.0])
def test_log_z_of_thousands_keeps_its_digits(size: float) -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean, "x": real},
        [
            (Table.shared([[size, size], [size + 1, -np.inf]]), ["a", "b"]),
            (ConditionalQuadratic.gaussian([[0.0], [2.0]], [[[1.0]], [[3.0]]]), ["b", "x"]),
        ],
    )

    posterior = infer(graph)

    assert posterior.log_partition.value == pytest.approx(size + np.log(2 + np.e), rel=1e-14)
    assert posterior.marginal("b").prob("true") == pytest.approx(1 / (2 + np.e), abs=1e-12)
    assert posterior.marginal("x").mean == pytest.approx(2 / (2 + np.e), abs=1e-11)


def answer_bytes(posterior: Posterior) -> bytes:
    """All numbers of log Z and the marginals, as they are in memory."""
    arrays = [np.array([posterior.log_partition.value])]
    for batch in posterior.all_marginals.batches:
        arrays += [getattr(batch, field) for field in batch._event_ndims]
    arrays += [posterior.all_marginals.batch, posterior.all_marginals.row]
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


@pytest.mark.parametrize("model", zoo.ZOO, ids=str)
def test_two_runs_give_the_same_bytes(model: zoo.ZooModel) -> None:
    graph = model.graph()

    first, second = infer(graph), infer(graph)

    assert answer_bytes(first) == answer_bytes(second)
    assert first.map().values.tobytes() == second.map().values.tobytes()


@pytest.mark.parametrize("seed", range(20))
def test_random_loopy_discrete_graphs_agree_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 7)
    variables = Variables.of([categorical(int(size)) for size in sizes], Names.numbered(7))
    pairs = [pair for pair in itertools.combinations(range(7), 2) if rng.random() < 0.6]
    groups = [
        FactorGroup(Table.shared(rng.normal(size=sizes[list(pair)])), np.array([pair]))
        for pair in pairs
    ]
    graph = FactorGraph(variables, tuple(groups))

    posterior = infer(graph, Exact(), tasks=EVERYTHING)

    expected = oracle.solve(graph)
    assert_agrees(posterior, expected, 1e-10)
    assert posterior.map().energy == pytest.approx(expected.map_energy, rel=0, abs=1e-10)
