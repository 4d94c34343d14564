"""The models of the paper as text: their sizes, densities and exact answers."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.instances import kalman, rgm, toy
from experiments.instances.sources import MODELS
from hylift.inference import infer
from hylift.language import format_model, parse, read_model
from paper_models import grounded
from slow_grounding import assert_same_density

SIZES = {"toy": (21, 24), "papers": (3400, 3390), "robot": (1591, 3182), "rgm": (606, 1100)}


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_sizes_are_those_of_the_paper(name, size):
    graph = grounded(name).graph

    assert (graph.num_variables, graph.num_factors) == size


@pytest.mark.parametrize("name", SIZES)
def test_densities_are_those_of_the_rules(name):
    assert_same_density(grounded(name), set(), seeds=1)


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.mln")), ids=lambda path: path.stem)
def test_formatting_changes_nothing(path):
    model = read_model(path)

    assert parse(format_model(model)) == model


def test_toy_has_the_exact_answers():
    posterior = infer(toy.instance().graph)

    assert posterior.log_partition.value == pytest.approx(13.344035214554, abs=1e-9)
    assert posterior.marginal("posA(a0)").mean == pytest.approx(-0.486916, abs=1e-6)
    assert posterior.marginal("posB(b2)").var == pytest.approx(1.150311, abs=1e-6)


@pytest.mark.parametrize(
    ("number", "mean", "sum_mean", "sum_var"),
    [(0, 0.164827734, 947.098842, 1440.539962), (1, 0.147604920, 244.767909, 1566.370629)],
)
def test_rgm_has_the_exact_answers(data_dir, number, mean, sum_mean, sum_var):
    graph = rgm.published(data_dir, number).graph

    posterior = infer(graph)

    table = posterior.marginals()
    assert posterior.marginal("recession").mean == pytest.approx(mean, abs=1e-8)
    assert np.sum(table["mean"].to_numpy()) == pytest.approx(sum_mean, abs=1e-5)
    assert np.sum(table["std"].to_numpy() ** 2) == pytest.approx(sum_var, abs=1e-5)


def test_papers_has_the_exact_map(data_dir):
    path = data_dir / "papers" / "evidence_0.csv"
    grounding = grounded("papers", path, unmatched="ignore")

    posterior = infer(grounding.graph, tasks=["map"])

    assert posterior.map().energy == pytest.approx(7425.860899, abs=1e-6)
    assert posterior.map().kind == "exact"
    assert grounding.statistics().num_observed == 1134


def test_robot_has_the_exact_map(data_dir):
    path = data_dir / "robot" / "robot-map.db"
    grounding = grounded("robot", path, closed=["Aligned"], unmatched="ignore")

    posterior = infer(grounding.graph, tasks=["map"])

    assert posterior.map().energy == pytest.approx(-5020.526558, abs=1e-6)
    statistics = grounding.statistics()
    assert (statistics.num_variables, statistics.num_groundings) == (1591, 3182)
    assert statistics.num_variables - statistics.num_observed == 111 + 55 + 9 + 20


def test_kalman_tree_has_the_exact_answers(data_dir):
    graph = kalman.published(data_dir, "tree", 0, "paper").graph

    posterior = infer(graph)

    last = posterior.marginals("x(*,19)")
    means = last["mean"].to_numpy()
    assert np.count_nonzero(np.isclose(means, 0.993844913, atol=1e-8)) == 74
    assert means.min() == pytest.approx(-0.330320491, abs=1e-8)
    assert np.allclose(last["std"].to_numpy() ** 2, 3.278092727, atol=1e-8)
    assert len(posterior.select()) == 1444


def test_kalman_cycle_has_the_exact_answers(data_dir):
    graph = kalman.published(data_dir, "cycle", 0, "paper").graph

    posterior = infer(graph)

    last = posterior.marginals("x(*,19)")
    means = [0.919003977] * 3 + [0.410717836, 3.123958634, 0.534403687]
    assert np.allclose(sorted(last["mean"].to_numpy()), sorted(means), atol=1e-8)
    assert np.allclose(last["std"].to_numpy() ** 2, 3.770915366, atol=1e-8)
    assert len(posterior.select()) == 114
