"""When Gibbs calls its answer converged, and what ties variables so that it may."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from hylift.graph import FactorGraph, boolean, categorical, real
from hylift.inference import Exact, infer
from hylift.inference.local.terms import LocalTerms
from hylift.inference.sampling import Gibbs
from hylift.inference.sampling.starts import random_starts
from hylift.inference.sampling.structure import Ties
from hylift.potentials import ConditionalQuadratic, Table
from hylift.rewrite.kinds import Kinds

ALIKE = Table.weighted(np.inf, [[1, 0], [0, 1]])
APART = (
    "Hard constraints may keep apart states between which no draw of a few variables at a time can "
    "move: then a chain sees its own side only, and R-hat may not show it."
)


def equal_pair() -> FactorGraph:
    return FactorGraph.build(
        {"a": boolean, "b": boolean}, [(ALIKE, ["a", "b"]), (Table.shared([0.0, 0.1]), ["a"])]
    )


def exactly_one(size: int) -> FactorGraph:
    """Booleans of which one is true, the first with a weight of 1."""
    names = [f"a{i}" for i in range(size)]
    one = Table.weighted(np.inf, np.indices((2,) * size).sum(axis=0) == 1)
    return FactorGraph.build(
        dict.fromkeys(names, boolean), [(one, names), (Table.shared([0.0, 1.0]), ["a0"])]
    )


def soft_wall() -> FactorGraph:
    return FactorGraph.build(
        {"a": boolean, "b": boolean},
        [(Table.shared([[50.0, 0.0], [0.0, 50.3]]), ["a", "b"])],
    )


def two_modes_of_one_mean() -> FactorGraph:
    table = np.full((3, 3), -30.0)
    table[np.ix_([0, 2], [0, 2])] = 0.0
    table[1, 1] = np.log(4.0)
    return FactorGraph.build(
        {"a": categorical(3), "b": categorical(3)}, [(Table.shared(table), ["a", "b"])]
    )


def equal_pair_with_reals_far_apart() -> FactorGraph:
    pull = ConditionalQuadratic.gaussian([[-50.0], [50.0]], [[[1.0]], [[1.0]]])
    return FactorGraph.build(
        {"a": boolean, "b": boolean, "x": real},
        [(ALIKE, ["a", "b"]), (pull, ["a", "x"]), (Table.shared([0.0, 0.5]), ["b"])],
    )


def chain_of(size: int, table: Table) -> FactorGraph:
    names = [f"a{i}" for i in range(size)]
    return FactorGraph.build(dict.fromkeys(names, boolean), [(table, list(pairwise(names)))])


@pytest.mark.parametrize(
    "model",
    [
        equal_pair,
        lambda: exactly_one(3),
        lambda: exactly_one(8),
        soft_wall,
        two_modes_of_one_mean,
        equal_pair_with_reals_far_apart,
    ],
)
@pytest.mark.parametrize("seed", range(8))
def test_variables_that_only_move_together_are_drawn_together(model, seed: int) -> None:  # type: ignore[no-untyped-def]
    graph = model()
    exact = infer(graph, Exact()).marginal(graph.variables.names[0]).probs

    found = infer(graph, Gibbs(), seed=seed)

    assert found.solution.result == "converged"
    assert found.draws is not None
    for state, prob in enumerate(exact):
        values = (found.draws.values[:, :, 0] == state).astype(float)
        # One sweep in four draws the group: 1,000 independent draws, and four standard errors.
        assert abs(values.mean() - prob) < 4 * np.sqrt(prob * (1 - prob) / 1000)


@pytest.mark.parametrize("seed", range(8))
def test_a_puzzle_too_large_to_draw_together_is_never_converged(seed: int) -> None:
    graph = chain_of(12, ALIKE)

    found = infer(graph, Gibbs(chains=2, draws=50, warm_up=20), seed=seed, rewrite=False)

    assert found.solution.result == "max_steps"
    assert APART in found.solution.notes


def test_constraints_that_single_flips_lead_around_do_not_take_trust() -> None:
    graph = chain_of(6, Table.weighted(np.inf, [[1, 1], [0, 1]]))
    true = infer(graph, Exact())

    found = infer(graph, Gibbs(draws=4000), seed=0)

    assert found.solution.result == "converged"
    assert APART not in found.solution.notes
    assert found.draws is not None
    assert abs(found.draws.mean[3] - true.marginal("a3").probs[1]) < 4 * found.draws.mcse[3]


def test_clauses_that_make_an_equality_tie_its_variables() -> None:
    clause = Table.weighted(np.inf, [[1, 1], [0, 1]])
    graph = FactorGraph.build(
        dict.fromkeys("abcd", boolean), [(clause, [["a", "b"], ["b", "a"], ["b", "c"]])]
    )

    ties = Ties.of(LocalTerms.of(Kinds.of(graph)))

    assert ties.group.tolist() == [0, 0, -1, -1]
    assert ties.is_connected


def test_groups_stay_within_their_limit() -> None:
    ties = Ties.of(LocalTerms.of(Kinds.of(chain_of(25, ALIKE))))

    sizes = np.bincount(ties.group[ties.group >= 0])
    assert sizes.max() == 10
    assert not ties.is_connected


def test_weak_tables_tie_nothing() -> None:
    ties = Ties.of(LocalTerms.of(Kinds.of(chain_of(5, Table.shared([[2.0, 0.0], [0.0, 2.0]])))))

    assert (ties.group == -1).all()
    assert ties.is_connected


def test_chains_begin_on_all_sides_of_a_constraint() -> None:
    graph = FactorGraph.build(
        {"a": boolean, "b": boolean}, [(ALIKE, ["a", "b"]), (Table.shared([0.0, 9.0]), ["a"])]
    )
    rngs = [np.random.default_rng(seed) for seed in range(200)]

    starts = random_starts(graph, LocalTerms.of(Kinds.of(graph)), rngs, seconds=None)

    np.testing.assert_array_equal(starts[:, 0], starts[:, 1])
    # A fair coin, thrown 200 times: four standard deviations are 0.14.
    assert starts[:, 0].mean() == pytest.approx(0.5, abs=0.15)


def test_one_chain_is_never_converged() -> None:
    graph = FactorGraph.build({"a": boolean}, [(Table.shared([0.0, 0.3]), ["a"])])

    alone, two = (infer(graph, Gibbs(chains=chains), seed=0) for chains in (1, 2))

    assert alone.solution.result == "max_steps"
    assert "One chain cannot show whether another would agree: run two or more." in (
        alone.solution.notes
    )
    assert two.solution.result == "converged"
