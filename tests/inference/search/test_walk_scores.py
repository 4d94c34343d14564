"""Scores that are kept while variables move equal those computed anew."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from hylift.graph import FactorGraph, FactorGroup, Variables, boolean, interval
from hylift.graph import real as real_line
from hylift.inference.control import Control
from hylift.inference.local.terms import LocalTerms, as_written
from hylift.inference.method import Request
from hylift.inference.search.kernels.walk import walk_on
from hylift.inference.search.limits import goals_of
from hylift.inference.search.state import BEST, MOVES, NOW, SATISFIED, UNSATISFIED, Goals
from hylift.inference.search.walker import Walker, scattered
from hylift.potentials import ConditionalQuadratic
from hylift.progress import silent
from hylift.rewrite.kinds import Kinds
from inference.search.rugged import rugged


def walker_on(graph: FactorGraph) -> Walker:
    rng = np.random.default_rng(0)
    control = Control(Request(frozenset({"map"}), 0, silent))
    walker = Walker.of(graph, control, rng, flips=1, random=0.3, noise=1.0)
    walker.go_to(scattered(graph.variables, rng))
    return walker


def goals_on(graph: FactorGraph) -> Goals:
    return goals_of(Kinds.of(graph, as_written), LocalTerms.of(Kinds.of(graph)))


def one_smokes() -> FactorGraph:
    return zoo.friends_and_smokers(6).observe({"Smokes(p0)": True}).condition()


MODELS = [rugged, lambda: zoo.toy_hybrid_mln(4, 5, 3), one_smokes]


@pytest.mark.parametrize("model", MODELS, ids=["rugged", "toy", "smokers"])
def test_after_many_flips_all_scores_are_what_they_would_be_anew(model):
    walker = walker_on(model())
    while walker.moves < 100_000:
        walk_on(walker.terms, walker.search, walker.goals, walker.walk, 20_000, 0.3, 1.0)
        assert walker.walk.sizes[:2].any()

    anew = walker_on(walker.written.graph)
    anew.solve = anew.solve._replace(
        reals=anew.solve.reals[:0]
    )  # where it is, without a joint solve
    anew.go_to(walker.values())

    kept, search, walk = (walker.search, walker.walk), anew.search, anew.walk
    assert walk.sizes[MOVES] == 0
    for field in ("x", "curve", "slope"):
        assert getattr(kept[0], field) == pytest.approx(getattr(search, field), abs=1e-9)
    for field in ("value", "broken"):
        assert kept[0].score[field] == pytest.approx(search.score[field], abs=1e-9)
    assert kept[0].coupling == pytest.approx(search.coupling, abs=1e-9)
    assert (kept[0].joint == search.joint).all()
    assert kept[1].worth[NOW] == pytest.approx(walk.worth[NOW], abs=1e-9)
    assert (kept[1].status == walk.status).all()
    for row in range(2):
        size = walk.sizes[row]
        assert kept[1].sizes[row] == size
        assert set(kept[1].lists[row, :size]) == set(walk.lists[row, :size])


def test_the_best_assignment_is_the_one_whose_worth_was_kept():
    walker = walker_on(rugged())

    for _ in range(10):
        walk_on(walker.terms, walker.search, walker.goals, walker.walk, 2000, 0.3, 1.0)

    assert walker.energy == pytest.approx(
        -walker.written.graph.log_density(walker.walk.best), abs=1e-9
    )
    assert walker.walk.worth[BEST, 0] == 0


def test_the_best_of_a_factor_is_a_bound_that_tables_and_single_reals_reach():
    graph = rugged()
    goals = goals_on(graph)
    rng = np.random.default_rng(1)

    draws = [scattered(graph.variables, rng) for _ in range(300)]

    values = np.stack([np.concatenate([g.log_values(x) for g in graph.groups]) for x in draws])
    # Tables stand before quadratics already, so the order is that of the groups.
    assert (values <= goals.enough + 1e-6).all()  # `enough` is a little below the best
    assert values[:, :300].max(axis=0) == pytest.approx(goals.enough[:300], abs=1e-6)
    near = ConditionalQuadratic.squared_distance([1.0, 1.0, 1.0], [1.0], [0.5, 3.0, -2.0])
    three = FactorGraph(
        Variables.uniform(interval(0, 1), 3), (FactorGroup(near, np.arange(3)[:, None]),)
    )
    enough = goals_on(three).enough
    assert enough == pytest.approx([0.0, -4.0, -4.0], abs=1e-7)


def test_a_product_of_reals_has_no_best_and_an_equality_of_reals_has():
    graph = FactorGraph.build(
        {"x": real_line, "y": real_line, "on": boolean},
        [
            (ConditionalQuadratic.product(0.3), ["x", "y"]),
            (
                ConditionalQuadratic.squared_distance(2.0, [1.0, -1.0]).times([0, 1]),
                ["on", "x", "y"],
            ),
            (ConditionalQuadratic.shared([[0.0]], [1.0]), ["x"]),
        ],
    )

    walker = walker_on(graph)

    assert np.isinf(walker.goals.enough).sum() == 2
    assert walker.goals.enough.min() == pytest.approx(0.0, abs=1e-7)
    assert set(walker.walk.status.tolist()) <= {SATISFIED, UNSATISFIED}
