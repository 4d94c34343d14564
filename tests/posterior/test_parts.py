"""Mixtures whose parts have weights of their own answer as the plain mixture that says the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hylift as hl
from hylift.components import Layout
from hylift.errors import ModelError
from hylift.graph import FactorGraph, Variables, boolean, interval, real
from hylift.posterior import Posterior, Solution
from hylift.posterior.mixture import Mixture

DOMAINS = {
    "a": boolean, "x": real, "y": real, "b": boolean, "u": interval(0, 2), "c": boolean,
}  # fmt: skip
PART = np.array([0, 0, 1, 1, 2, 2], dtype=np.int32)
IDS = np.arange(6)


def variables() -> Variables:
    return FactorGraph.build(DOMAINS, []).variables


def in_parts(rng: np.random.Generator) -> Mixture:
    """Three parts of two variables each, two components."""
    layout = Layout.of(variables(), np.array([False] * 4 + [True, False]))
    entries = np.empty((layout.num_entries, 2))
    for i in layout.discrete:
        entries[layout.first[i] : layout.first[i + 1]] = rng.dirichlet([2.0, 2.0], 2).T
    for i in layout.reals:
        at = layout.first[i]
        entries[at], entries[at + 1] = rng.normal(0, 2, 2), rng.uniform(0.3, 1.0, 2)
    at = layout.first[4]
    entries[at : at + 2] = rng.uniform(1.5, 5.0, (2, 2))
    return Mixture(rng.dirichlet([3.0, 3.0], 3), layout, entries, IDS.astype(np.int32), IDS, PART)


@pytest.fixture
def q() -> Mixture:
    return in_parts(np.random.default_rng(4))


def posterior_of(mixture: Mixture) -> Posterior:
    solution = Solution("BVI(2)", 0, "converged", 1, 0.0, 0.0)
    marginals = mixture.marginals(variables())
    return Posterior(variables(), np.zeros(6, bool), solution, None, marginals, None, mixture)


def points(q: Mixture) -> np.ndarray:
    return q.expanded().sample(20, np.random.default_rng(1))


def test_a_plain_mixture_of_all_choices_has_the_same_density(q: Mixture) -> None:
    plain = q.expanded()

    assert plain.num_components == 8
    np.testing.assert_allclose(
        q.log_density(IDS, points(q)), plain.log_density(IDS, points(q)), rtol=1e-12
    )
    some = np.array([3, 0, 4])
    np.testing.assert_allclose(
        q.log_density(some, points(q)[:, some]), plain.log_density(some, points(q)[:, some]),
        rtol=1e-12,
    )  # fmt: skip


def test_marginals_use_the_weights_of_their_part(q: Mixture) -> None:
    one, other = (each.marginals(variables()) for each in (q, q.expanded()))

    for i in range(6):
        if i in (1, 2, 4):
            assert one[i].mean == pytest.approx(other[i].mean, abs=1e-12)
            assert one[i].var == pytest.approx(other[i].var, abs=1e-12)
        else:
            np.testing.assert_allclose(one[i].probs, other[i].probs, atol=1e-12)
    np.testing.assert_allclose(q.marginal_modes(), q.expanded().marginal_modes(), atol=1e-8)


def test_what_is_given_changes_its_own_part_alone(q: Mixture) -> None:
    ids, values = np.array([1, 5]), np.array([0.4, 1.0])

    found, plain = q.given(ids, values), q.expanded().given(ids, values)

    np.testing.assert_array_equal(found.part_weights[1], q.part_weights[1])
    rest = np.array([0, 2, 3, 4])
    np.testing.assert_allclose(
        found.log_density(rest, points(q)[:, rest]), plain.log_density(rest, points(q)[:, rest]),
        rtol=1e-12,
    )  # fmt: skip
    assert found.marginals(variables())[0].probs == pytest.approx(
        plain.marginals(variables())[0].probs
    )


def test_draws_have_the_moments_of_the_plain_mixture(q: Mixture) -> None:
    draws = q.sample(200_000, np.random.default_rng(0))
    others = q.expanded().sample(200_000, np.random.default_rng(1))

    np.testing.assert_allclose(draws.mean(axis=0), others.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), np.cov(others.T), atol=0.06)


def test_the_mode_is_found_in_each_part(q: Mixture) -> None:
    values, height = q.mode()
    plain, highest = q.expanded().mode()

    np.testing.assert_allclose(values, plain, atol=1e-6)
    assert height == pytest.approx(highest, abs=1e-10)
    assert height == pytest.approx(float(q.log_density(IDS, values[None])[0]), abs=1e-10)


@pytest.mark.parametrize("atoms", [["a", "b", "c"], ["c", "a"], ["b"]])
def test_probabilities_of_states_across_parts(q: Mixture, atoms: list[str]) -> None:
    one, other = (posterior_of(each).joint(atoms) for each in (q, q.expanded()))

    np.testing.assert_allclose(one.probs(), other.probs(), atol=1e-12)


def test_covariances_and_expectations_across_parts(q: Mixture) -> None:
    one, other = (posterior_of(each).joint(["x", "u", "y"]) for each in (q, q.expanded()))

    np.testing.assert_allclose(one.mean, other.mean, atol=1e-12)
    np.testing.assert_allclose(one.cov, other.cov, atol=1e-12)
    found, expected = (each.expect(lambda x, u, y: x * y + np.exp(u)) for each in (one, other))
    assert found.value == pytest.approx(expected.value, rel=1e-12)


def test_a_mixture_with_parts_is_stored(q: Mixture, tmp_path: Path) -> None:
    posterior_of(q).save(tmp_path / "found.hylift")

    loaded = hl.Posterior.load(tmp_path / "found.hylift").mixture

    assert isinstance(loaded, Mixture)
    assert loaded.part is not None
    np.testing.assert_array_equal(loaded.part, PART)
    np.testing.assert_array_equal(loaded.weights, q.weights)


def test_a_part_that_does_not_exist_is_refused(q: Mixture) -> None:
    with pytest.raises(ModelError, match="in a part that does not exist"):
        replace(q, part=PART + 1)
