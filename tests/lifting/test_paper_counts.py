"""How far the models of the paper, and others that were published, lift."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from experiments.instances import kalman, papers, rgm, robot, toy
from hylift import read_evidence, read_uai
from hylift.graph import FactorGraph
from hylift.lifting import lift
from oracle import coarsest_equitable
from zoo import friends_and_smokers, toy_hybrid_mln


@pytest.mark.parametrize("graph", [toy_hybrid_mln, lambda: toy.instance().graph])
def test_toy(graph: Callable[[], FactorGraph]) -> None:
    lifting = lift(graph())

    assert lifting.ground.num_variables == 21
    assert (lifting.num_classes, lifting.graph.num_factors) == (5, 3)


@pytest.mark.parametrize("num_people", [5, 20, 60])
def test_friends_and_smokers_lift_to_as_many_classes_for_any_number(num_people: int) -> None:
    lifting = lift(friends_and_smokers(num_people))

    assert (lifting.num_classes, lifting.graph.num_factors) == (3, 5)


@pytest.mark.parametrize(("number", "num_hidden", "num_classes"), [(0, 523, 277), (1, 565, 181)])
def test_relational_gaussian_model(
    data_dir: Path, number: int, num_hidden: int, num_classes: int
) -> None:
    graph = rgm.published(data_dir, number).graph

    lifting = lift(graph)

    assert (lifting.ground.num_variables, lifting.num_classes) == (num_hidden, num_classes)


def test_kalman_tree(data_dir: Path) -> None:
    lifting = lift(kalman.published(data_dir, "tree", 0, "paper").graph)

    assert (lifting.ground.num_variables, lifting.num_classes) == (1444, 57)


def test_kalman_cycle(data_dir: Path) -> None:
    lifting = lift(kalman.published(data_dir, "cycle", 0, "paper").graph)

    assert (lifting.ground.num_variables, lifting.num_classes) == (114, 76)


def test_robot_lifts_as_far_as_the_reference(data_dir: Path) -> None:
    graph = robot.published(data_dir, "paper").graph

    lifting = lift(graph)

    assert lifting.variable_to_class.tolist() == coarsest_equitable(lifting.ground)
    assert lifting.ground.num_variables == 111 + 55 + 9 + 20


@pytest.mark.slow
def test_papers_lift_as_far_as_the_reference(data_dir: Path) -> None:
    lifting = lift(papers.published(data_dir, 0, "paper").graph)

    assert lifting.variable_to_class.tolist() == coarsest_equitable(lifting.ground)
    assert lifting.num_classes == 1816


def test_alchemy_model_has_four_classes(data_dir: Path) -> None:
    path = data_dir / "uai" / "Alchemy_11.uai"
    graph = read_uai(path)
    evidence = read_evidence(Path(f"{path}.evid"), graph.variables.num_states)

    lifting = lift(graph.observe(evidence))

    assert len(evidence) == 0
    assert (lifting.ground.num_variables, lifting.num_classes) == (440, 4)


@pytest.mark.parametrize(
    "name",
    ["CSP_11", "DBN_11", "Pedigree_11", pytest.param("Segmentation_11", marks=pytest.mark.slow)],
)
def test_published_models_lift_as_far_as_the_reference(data_dir: Path, name: str) -> None:
    path = data_dir / "uai" / f"{name}.uai"
    model = read_uai(path)
    graph = model.observe(read_evidence(Path(f"{path}.evid"), model.variables.num_states))

    lifting = lift(graph)

    assert lifting.variable_to_class.tolist() == coarsest_equitable(lifting.ground)
    sizes = np.bincount(lifting.variable_to_class)
    assert lifting.graph.variables.multiplicity.tolist() == sizes.tolist()
