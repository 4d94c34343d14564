"""Observed reals, sorted into clusters of similar values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hylift.errors import ModelError
from hylift.graph import Atoms, Evidence, FactorGraph, Soft, Variables, boolean, real
from hylift.lifting.coarse.clusters import EvidenceClusters


def observed(values: list[float], multiplicity: list[float] | None = None) -> FactorGraph:
    """Reals of one predicate, all of them observed."""
    plain = Variables.uniform(real, len(values))
    weights = np.ones(len(values)) if multiplicity is None else np.array(multiplicity)
    variables = Variables(plain.domains, plain.domain_id, plain.names, weights)
    return FactorGraph(variables, ()).observe(Evidence.of(np.arange(len(values)), values))


def weather() -> FactorGraph:
    """Two predicates of reals and one of truths, for three towns."""
    towns = (["a", "b", "c"],)
    blocks = [("heat", real), ("rain", real), ("windy", boolean)]
    variables = Variables.in_blocks([(Atoms(name, towns), domain) for name, domain in blocks])
    return FactorGraph(variables, ())


def split_all(clusters: EvidenceClusters) -> EvidenceClusters:
    return clusters.split(np.ones(len(clusters), dtype=bool))


def squared_distances(values: np.ndarray, weights: np.ndarray) -> float:
    return float(weights @ (values - np.average(values, weights=weights)) ** 2)


def test_at_first_there_is_a_cluster_for_each_predicate() -> None:
    graph = weather().observe({"heat(a)": 20, "rain(c)": 3, "heat(c)": 30, "windy(b)": True})

    clusters = EvidenceClusters.of(graph)

    assert clusters.cluster.tolist() == [0, 1, 0, -1]
    assert [clusters.predicates[p] for p in clusters.predicate] == ["heat", "rain"]
    assert clusters.mean.tolist() == [25, 3]
    assert clusters.variance.tolist() == [25, 0]
    assert clusters.sizes.tolist() == [2, 1]
    assert clusters.num_distinct.tolist() == [2, 1]


def test_measurements_of_different_error_are_in_different_clusters() -> None:
    graph = weather().observe(
        {
            "heat(a)": Soft(20, 0.3),
            "heat(b)": 22,
            "heat(c)": Soft(25, 0.1 + 0.2),  # equal to 0.3, but for the last bit
            "rain(a)": Soft(1, 4),
            "rain(b)": Soft(1, 0.3),
        }
    )

    clusters = EvidenceClusters.of(graph)

    assert clusters.cluster.tolist() == [0, 1, 0, 2, 3]
    assert clusters.error.tolist() == [0.3, 0, 4, 0.3]


def test_reals_that_are_left_out_have_no_cluster() -> None:
    graph = weather().observe({"heat(a)": 20, "heat(b)": 21, "rain(c)": 3})

    clusters = EvidenceClusters.of(graph, np.array([False, True, True]))

    assert clusters.cluster.tolist() == [-1, 0, 1]
    assert clusters.mean.tolist() == [21, 3]


def test_predicates_are_known_when_some_of_their_variables_are_gone() -> None:
    graph = weather().observe({"heat(a)": 20, "windy(c)": False}).condition()

    clusters = EvidenceClusters.of(graph.observe({"rain(b)": 1.0, "heat(c)": 2.0}))

    assert [clusters.predicates[p] for p in clusters.predicate] == ["rain", "heat"]


def test_without_observed_reals_there_are_no_clusters() -> None:
    clusters = EvidenceClusters.of(weather().observe({"windy(a)": True}))

    assert len(clusters) == 0
    assert clusters.cluster.tolist() == [-1]
    assert len(split_all(clusters)) == 0


@given(
    st.lists(
        st.tuples(st.integers(-20, 20).map(lambda v: v / 4), st.sampled_from([1.0, 2.0, 0.5, 7.0])),
        min_size=2,
        max_size=12,
    )
)
def test_no_other_cut_has_smaller_squared_distances(pairs: list[tuple[float, float]]) -> None:
    values, weights = np.array(pairs).T

    clusters = split_all(EvidenceClusters.of(observed(list(values), list(weights))))

    order = np.argsort(values, kind="stable")
    ordered, heavy = values[order], weights[order]
    cuts = [at for at in range(1, len(values)) if ordered[at] != ordered[at - 1]]
    if not cuts:
        assert len(clusters) == 1
        return
    best = min(
        squared_distances(ordered[:at], heavy[:at]) + squared_distances(ordered[at:], heavy[at:])
        for at in cuts
    )
    parts = [clusters.cluster == number for number in range(2)]
    found = sum(squared_distances(values[part], weights[part]) for part in parts)
    assert found == pytest.approx(best, rel=1e-10, abs=1e-10)
    assert max(values[parts[0]].min(), values[parts[1]].min()) > min(
        values[parts[0]].max(), values[parts[1]].max()
    )


@given(
    st.lists(st.integers(-30, 30).map(lambda v: v / 8), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)
def test_splitting_goes_on_until_each_cluster_has_one_value(values, random) -> None:
    clusters = EvidenceClusters.of(observed(values))

    while (clusters.num_distinct > 1).any():
        before = clusters
        chosen = np.array([random.random() < 0.5 for _ in range(len(clusters))])
        clusters = clusters.split(chosen)

        old = clusters.cluster < len(before)
        assert (clusters.cluster[old] == before.cluster[old]).all()
        assert len(clusters) == len(before) + np.count_nonzero(chosen & (before.num_distinct > 1))
        for number in range(len(clusters)):
            members = np.array(values)[clusters.cluster == number]
            assert clusters.sizes[number] == len(members)
            assert clusters.num_distinct[number] == len(set(members.tolist()))
            assert clusters.mean[number] == pytest.approx(members.mean(), rel=1e-12, abs=1e-12)
            assert clusters.variance[number] == pytest.approx(members.var(), rel=1e-12, abs=1e-12)

    assert len(clusters) == len(set(values))


def test_the_larger_part_keeps_its_number_and_of_equal_ones_the_lower() -> None:
    larger_above = split_all(EvidenceClusters.of(observed([0.0, 9.0, 10.0, 11.0])))
    equal = split_all(EvidenceClusters.of(observed([10.0, 0.0, 11.0, 1.0])))

    assert larger_above.cluster.tolist() == [1, 0, 0, 0]
    assert equal.cluster.tolist() == [1, 0, 1, 0]


def test_only_chosen_clusters_are_split() -> None:
    first = split_all(EvidenceClusters.of(observed([0.0, 1.0, 10.0, 11.0, 12.0])))

    second = first.split(np.array([False, True]))

    assert first.cluster.tolist() == [1, 1, 0, 0, 0]
    assert second.cluster.tolist() == [1, 2, 0, 0, 0]


def test_multiplicities_are_weights() -> None:
    clusters = EvidenceClusters.of(observed([0.0, 3.0, 4.0], [1.0, 1.0, 4.0]))

    assert clusters.mean.tolist() == [pytest.approx(19 / 6)]
    assert clusters.variance.tolist() == [pytest.approx(73 / 6 - (19 / 6) ** 2)]


def test_values_equal_to_the_tolerance_stay_together() -> None:
    values = [1.0, 1.0 + 4e-13, 1.0 + 2e-9, -0.0, 0.0]

    clusters = EvidenceClusters.of(observed(values))
    exactly = EvidenceClusters.of(observed(values), tolerance=0.0)

    assert clusters.num_distinct.tolist() == [3]
    assert exactly.num_distinct.tolist() == [4]
    while (clusters.num_distinct > 1).any():
        clusters = split_all(clusters)
    assert len(clusters) == 3
    assert clusters.cluster[0] == clusters.cluster[1]
    assert clusters.cluster[3] == clusters.cluster[4]


def test_a_large_offset_costs_no_digits() -> None:
    values = [1e9 + 1e-3 * step for step in (0, 1, 2, 50, 51, 53)]
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / 6

    clusters = EvidenceClusters.of(observed(values))

    assert clusters.mean[0] == float(mean)
    variance = float(sum((value - mean) ** 2 for value in exact) / 6)
    assert clusters.variance[0] == pytest.approx(variance, rel=1e-12)
    assert split_all(clusters).cluster.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1.7e307])
def test_no_size_of_values_is_too_small_or_too_large(scale: float) -> None:
    values = [scale * step for step in (-10, -9, 8, 10)]

    clusters = split_all(EvidenceClusters.of(observed(values)))

    assert clusters.cluster.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(clusters.mean, [-9.5 * scale, 9 * scale], rtol=1e-3)
    assert not np.isnan(clusters.variance).any()


def test_what_to_split_is_said_by_truth_values() -> None:
    clusters = EvidenceClusters.of(observed([0.0, 1.0]))

    with pytest.raises(ModelError, match=r"choice among 1 clusters .* of int64 of shape \(2,\)"):
        clusters.split(np.array([0, 1]))
