"""Instances of the paper's models: their sizes, their evidence, and what is wrong with data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from numpy.typing import NDArray

from experiments.instances import Instance, Variant, kalman, papers, rgm, robot, sources, toy
from hylift.errors import EvidenceError, FormatError, HyliftError, UnknownNameError
from hylift.graph import FactorGraph
from hylift.inference import Exact, infer
from hylift.lifting import lift

VARIANTS: list[Variant] = ["paper", "clean"]

GENERATED: dict[str, Callable[[int], Instance]] = {
    "papers": lambda seed: papers.generated(seed, "paper"),
    "papers, clean": lambda seed: papers.generated(seed, "clean"),
    "robot": lambda seed: robot.generated(seed, "paper"),
    "robot, clean": lambda seed: robot.generated(seed, "clean"),
    "rgm": lambda seed: rgm.generated(seed, 0.2),
    "tree": lambda seed: kalman.generated("tree", seed, "paper"),
    "tree, clean": lambda seed: kalman.generated("tree", seed, "clean"),
    "cycle": lambda seed: kalman.generated("cycle", seed, "paper"),
    "cycle, clean": lambda seed: kalman.generated("cycle", seed, "clean"),
}


def observed(graph: FactorGraph, predicate: str = "") -> dict[str, float]:
    """The values of the observed atoms, of one predicate or of all."""
    names = graph.variables.names.render(graph.evidence.variable).to_pylist()
    values = zip(names, graph.evidence.value.tolist(), strict=True)
    return {n: value for n, value in values if predicate in ("", n.partition("(")[0])}


def counts(graph: FactorGraph) -> tuple[int, int, int]:
    """Of variables, factors and observations."""
    return graph.num_variables, graph.num_factors, len(graph.evidence)


def domains_of_reals(graph: FactorGraph) -> set[tuple[float, float]]:
    return {(d.lower, d.upper) for d in graph.variables.domains if not d.is_discrete}


# All of them


@pytest.mark.parametrize("name", GENERATED)
def test_the_same_seed_gives_the_same_evidence(name: str) -> None:
    once, again, other = (GENERATED[name](seed) for seed in (3, 3, 4))

    assert once.label == again.label == "generated evidence, seed 3"
    assert observed(once.graph) == observed(again.graph)
    assert observed(once.graph) != observed(other.graph)


def test_the_toy_has_no_evidence() -> None:
    found = toy.instance()

    assert counts(found.graph) == (21, 24, 0)
    assert found.label == "no evidence"


# Papers


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("number", "num_observed"), [(0, 1134), (1, 1142)])
def test_published_papers(data_dir: Path, number: int, num_observed: int, variant: Variant) -> None:
    found = papers.published(data_dir, number, variant)

    assert found.label == f"published evidence {number}"
    assert counts(found.graph) == (3400, 3390, num_observed)
    assert not observed(found.graph, "SameSession")


def test_generated_papers_follow_the_text() -> None:
    graph = papers.generated(0, "clean").graph

    assert counts(graph) == (3400, 3390, 210 + 7 + 2100 + 90)
    assert domains_of_reals(graph) == {(0, 10)}
    assert len(observed(graph, "PaperPopularity")) == 210
    assert len(observed(graph, "TopicPopularity")) == 7
    values = np.array(list(observed(graph, "PaperPopularity").values()))
    assert 0 <= values.min() < 0.5 < 9.5 < values.max() <= 10
    # Both bounds are four standard deviations away from a half.
    assert np.mean(list(observed(graph, "PaperIn").values())) == pytest.approx(0.5, abs=0.044)
    assert np.mean(list(observed(graph, "SameSession").values())) == pytest.approx(0.5, abs=0.21)


def test_generated_papers_have_the_quirks_of_the_files() -> None:
    graph = papers.generated(0, "paper").graph

    assert (graph.num_variables, graph.num_factors) == (3400, 3390)
    assert domains_of_reals(graph) == {(-15, 15)}
    assert not observed(graph, "SameSession")
    told = [name.partition("(")[2].partition(",")[0] for name in observed(graph, "PaperIn")]
    assert set(np.unique(told, return_counts=True)[1]) == set(range(1, 10))
    # The files have 917 and 925; 4.5 topics of 210 papers are 945, with a standard deviation of 42.
    assert len(told) == pytest.approx(945, abs=170)


@pytest.mark.parametrize(("variant", "weight"), [("paper", 1.0), ("clean", 0.5)])
def test_papers_follow_their_topics_more_closely_than_the_text_says(
    variant: Variant, weight: float
) -> None:
    graph = papers.generated(0, variant).graph
    popularity, belongs = graph.variables.names.ids(["PaperPopularity(p0)", "PaperIn(p0,t0)"])
    outside, inside = np.zeros((2, graph.num_variables))
    outside[popularity] = inside[popularity] = 2.0
    inside[belongs] = 1.0

    difference = graph.log_density(inside) - graph.log_density(outside)

    assert difference == pytest.approx(-weight * 2.0**2)


# Robot


@pytest.mark.parametrize(("variant", "num_types"), [("paper", 0), ("clean", 9)])
def test_the_published_map(data_dir: Path, variant: Variant, num_types: int) -> None:
    found = robot.published(data_dir, variant)

    types = observed(found.graph, "SegType")
    assert found.label == "published evidence"
    assert found.graph.num_variables == 1591 - 1332  # those of the closed world are none
    assert len(found.graph.evidence) == 19 + 28 + 17 + num_types
    assert len(types) == num_types
    assert set(types.values()) <= {1.0}
    assert ("SegType(A1_5,O)" in types) == (variant == "clean")


@pytest.mark.parametrize(("variant", "num_observed"), [("paper", 64), ("clean", 73)])
def test_maps_are_of_one_size(data_dir: Path, variant: Variant, num_observed: int) -> None:
    generated = (robot.generated(seed, variant) for seed in range(3))

    for found in (robot.published(data_dir, variant), *generated):
        assert counts(found.graph) == (259, 1878, num_observed)


def test_a_generated_map_has_walls_on_lines_and_the_formulas_lengths() -> None:
    graph = robot.generated(1, "clean").graph

    walls = {name[7:-5] for name in observed(graph, "PartOf")}
    types = observed(graph, "SegType")
    lengths = observed(graph, "Length")
    assert len(walls) == 19
    assert {name[8:-3] for name in types if name.endswith("W)")} <= walls
    assert not {name[8:-3] for name in types if not name.endswith("W)")} & walls
    others = np.array([value for name, value in lengths.items() if name[7:-1] not in walls])
    doors = others[others > 0.07]
    assert len(lengths) == 28
    np.testing.assert_allclose(doors, 0.1, atol=0.012)  # four standard deviations


def test_variants_of_a_generated_map_differ_in_types_only() -> None:
    paper, clean = (observed(robot.generated(2, variant).graph) for variant in VARIANTS)

    assert {name: clean[name] for name in paper} == paper
    assert {name.partition("(")[0] for name in clean.keys() - paper.keys()} == {"SegType"}


# The relational Gaussian model


@pytest.mark.parametrize(("number", "num_observed"), [(0, 83), (1, 41)])
def test_published_recessions(data_dir: Path, number: int, num_observed: int) -> None:
    found = rgm.published(data_dir, number)

    assert found.label == f"published evidence {number}"
    assert counts(found.graph) == (606, 1100, num_observed)


@pytest.mark.parametrize(("share", "num_observed"), [(0.0, 0), (0.05, 30), (0.2, 121), (1.0, 606)])
def test_generated_recessions_observe_a_share(share: float, num_observed: int) -> None:
    found = rgm.generated(0, share)

    assert counts(found.graph) == (606, 1100, num_observed)
    assert (np.abs(found.graph.evidence.value) <= 30).all()


def test_a_share_is_between_none_and_all() -> None:
    with pytest.raises(EvidenceError, match=r"observed variables is between 0 and 1, not 20"):
        rgm.generated(0, 20)


# Kalman filters


@pytest.mark.parametrize("trial", range(kalman.NUM_PUBLISHED))
@pytest.mark.parametrize(("shape", "num_hidden"), [("tree", 1444), ("cycle", 114)])
def test_published_filters_with_fillers(
    data_dir: Path, shape: kalman.Shape, num_hidden: int, trial: int
) -> None:
    found = kalman.published(data_dir, shape, trial, "paper")

    levels = [*observed(found.graph, "x").values(), *observed(found.graph, "o").values()]
    assert found.label == f"trial {trial}"
    assert found.graph.num_variables - len(found.graph.evidence) == num_hidden
    assert np.isin(levels, [0, 1]).sum() == {"tree": 1504, "cycle": 93}[shape]


@pytest.mark.parametrize(
    ("shape", "num_wells", "num_first", "num_measured"), [("tree", 76, 1, 15), ("cycle", 6, 3, 24)]
)
def test_published_filters_with_gaps(
    data_dir: Path, shape: kalman.Shape, num_wells: int, num_first: int, num_measured: int
) -> None:
    graph = kalman.published(data_dir, shape, 0, "clean").graph

    assert graph.num_variables == 20 * num_wells + num_measured
    assert len(observed(graph, "x")) == num_first
    assert len(observed(graph, "o")) == num_measured
    assert len(graph.evidence) == num_first + num_measured


def test_a_well_without_levels_has_what_its_prior_becomes(data_dir: Path) -> None:
    graph = kalman.published(data_dir, "tree", 0, "clean").graph

    found = infer(graph, Exact())

    q, _, a = trial_constants(data_dir, "tree")
    var = 25.0
    for _ in range(19):
        var = a**2 * var + q
    assert found.marginal("x(0,19)").mean == pytest.approx(0.0, abs=1e-9)
    assert found.marginal("x(0,19)").var == pytest.approx(var, rel=1e-9)


def test_the_cycle_with_gaps_ends_where_a_kalman_filter_does(data_dir: Path) -> None:
    graph = kalman.published(data_dir, "cycle", 0, "clean").graph
    levels = {**observed(graph, "x"), **observed(graph, "o")}

    found = infer(graph, Exact()).marginals(kalman.LAST_MONTH)

    mean, cov = filtered(levels, *trial_constants(data_dir, "cycle"))
    np.testing.assert_allclose(found["mean"].to_numpy(), mean, rtol=1e-8)
    np.testing.assert_allclose(found["std"].to_numpy() ** 2, np.diag(cov), rtol=1e-8)


def trial_constants(data_dir: Path, shape: str) -> list[float]:
    path = data_dir / "groundwater" / f"LRKF_{shape}.mat"
    return scipy.io.loadmat(path)["param"][:, 0].tolist()


def filtered(
    levels: dict[str, float], q: float, r: float, a: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and covariance of the last month of six wells, step by step."""
    mean, cov = np.zeros(6), 25.0 * np.eye(6)
    transition = a * np.eye(6) + 0.01
    for month in range(20):
        if month:
            mean, cov = transition @ mean, transition @ cov @ transition.T + q * np.eye(6)
        for well in range(6):
            level = levels.get(f"{'o' if month else 'x'}({well},{month})")
            if level is not None:
                gain = cov[:, well] / (cov[well, well] + (r if month else 0.0))
                mean, cov = mean + gain * (level - mean[well]), cov - np.outer(gain, cov[well])
    return mean, cov


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("shape", "num_hidden", "num_fillers"), [("tree", 1444, 1504), ("cycle", 114, 93)]
)
def test_generated_filters_are_of_the_size_of_the_published(
    shape: kalman.Shape, num_hidden: int, num_fillers: int, seed: int
) -> None:
    paper, clean = (kalman.generated(shape, seed, variant).graph for variant in VARIANTS)

    seen = observed(paper)
    assert paper.num_variables - len(seen) == num_hidden
    assert np.isin(list(seen.values()), [0, 1]).sum() == num_fillers
    assert observed(clean).items() <= seen.items()
    assert len(seen) - len(clean.evidence) == num_fillers


@pytest.mark.parametrize(("shape", "num_classes"), [("tree", 57), ("cycle", 76)])
def test_generated_fillers_lift_as_far_as_the_published(
    shape: kalman.Shape, num_classes: int
) -> None:
    assert lift(kalman.generated(shape, 0, "paper").graph).num_classes == num_classes


def test_there_are_five_trials(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="there is no trial 5: trials are 0 to 4"):
        kalman.published(tmp_path, "tree", 5, "paper")


# Data that is not there, or not what it should be


@pytest.mark.parametrize(
    ("read", "file", "expected"),
    [
        (
            lambda data: papers.published(data, 0, "paper"),
            "papers/evidence_0.csv",
            "a table predicate, arg1, arg2, value",
        ),
        (lambda data: rgm.published(data, 7), "rgm/evidence_7.csv", "a table predicate"),
        (lambda data: robot.published(data, "clean"), "robot/robot-map.db", "facts as Alchemy"),
        (
            lambda data: kalman.published(data, "cycle", 0, "paper"),
            "groundwater/LRKF_cycle.mat",
            "a file of MATLAB with a matrix 'param', 3 × 5",
        ),
    ],
    ids=["papers", "rgm", "robot", "kalman"],
)
def test_a_file_that_is_missing_is_named(
    read: Callable[[Path], Instance], file: str, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(sources.MissingDataError) as caught:
        read(tmp_path)

    assert isinstance(caught.value, HyliftError)
    assert isinstance(caught.value, FileNotFoundError)
    assert str(caught.value).startswith(f"{tmp_path / file}: no such file; expected {expected}")
    assert str(caught.value).endswith("or none at all: evidence is then generated")


def test_a_file_without_the_matrix_is_told(tmp_path: Path) -> None:
    path = tmp_path / "well_t.mat"
    scipy.io.savemat(path, {"wells_t": np.eye(2)})

    with pytest.raises(FormatError) as caught:
        sources.read_matrix(path, "well_t", (2, 2))

    assert str(caught.value) == (
        f"{path}: has no matrix 'well_t', but 'wells_t'. Did you mean 'wells_t'?"
    )


@pytest.mark.parametrize(
    ("matrix", "what"),
    [
        (np.eye(2), "2 × 2 of type float64"),
        (np.array([["a", "b"], ["c", "d"], ["e", "f"]], dtype=object), "3 × 2 of type object"),
    ],
)
def test_a_matrix_of_another_size_or_of_no_numbers_is_told(
    matrix: NDArray[np.float64], what: str, tmp_path: Path
) -> None:
    path = tmp_path / "LRKF_tree.mat"
    scipy.io.savemat(path, {"param": matrix})

    with pytest.raises(FormatError) as caught:
        sources.read_matrix(path, "param", (3, 2))

    assert str(caught.value) == f"{path}: 'param' is {what}; expected numbers, 3 × 2"


@pytest.mark.parametrize("content", [b"", b"not MATLAB", b"MATLAB 5.0 MAT-file" + bytes(300)])
def test_a_file_that_is_not_matlabs_is_told(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "param.mat"
    path.write_bytes(content)

    with pytest.raises(FormatError, match=r"is not a file of MATLAB up to version 7\.2: "):
        sources.read_matrix(path, "param", (3, 5))
