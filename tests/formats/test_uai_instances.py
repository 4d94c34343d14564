"""Published models: their published marginals, and log10 Z by another program."""

from pathlib import Path

import numpy as np
import pytest

from hylift import FactorGraph, Posterior, read_evidence, read_uai
from hylift.formats.uai import read_marginals
from hylift.inference import Exact, infer

LOG10_Z = {
    "Alchemy_11": (606.279199, 1e-5),
    "CSP_11": (13.5630, 1e-4),  # printed with four decimals
    "DBN_11": (58.530663, 1e-5),
    "Segmentation_11": (-23.996092, 1e-5),
    "Pedigree_11": (-17.215494, 1e-5),
}


@pytest.fixture(scope="module", params=LOG10_Z)
def instance(request: pytest.FixtureRequest, data_dir: Path) -> Path:
    path = data_dir / "uai" / f"{request.param}.uai"
    if not path.exists():
        pytest.skip(f"there is no published model {path}")
    return path


@pytest.fixture(scope="module")
def graph(instance: Path) -> FactorGraph:
    model = read_uai(instance)
    return model.observe(read_evidence(Path(f"{instance}.evid"), model.variables.num_states))


@pytest.fixture(scope="module")
def posterior(graph: FactorGraph) -> Posterior:
    return infer(graph, Exact(), tasks=("marginals", "logz", "map"))


def test_log_z_is_the_published_one(instance: Path, posterior: Posterior) -> None:
    expected, tolerance = LOG10_Z[instance.stem]

    assert posterior.log_partition.kind == "exact"
    assert posterior.log_partition.value / np.log(10) == pytest.approx(expected, abs=tolerance)


def test_marginals_are_the_published_ones(instance: Path, posterior: Posterior) -> None:
    expected = read_marginals(Path(f"{instance}.MAR"))

    found = posterior.marginals(observed=True)["probs"].to_pylist()

    assert [len(probs) for probs in found] == [len(probs) for probs in expected]
    # The published numbers have six digits.
    np.testing.assert_allclose(np.concatenate(found), np.concatenate(expected), rtol=0, atol=1e-5)


def test_no_random_assignment_is_better_than_the_most_probable(
    graph: FactorGraph, posterior: Posterior
) -> None:
    best = posterior.map()
    rng = np.random.default_rng(0)
    evidence = graph.evidence

    assert best.kind == "exact"
    assert best.energy == pytest.approx(-graph.log_density(best.values), abs=1e-10)
    assert best.values[evidence.variable].tolist() == evidence.value.tolist()
    for _ in range(1000):
        values = rng.integers(0, graph.variables.num_states).astype(np.float64)
        values[evidence.variable] = evidence.value
        assert -graph.log_density(values) >= best.energy


def test_no_single_change_improves_the_most_probable_assignment(
    graph: FactorGraph, posterior: Posterior
) -> None:
    best = posterior.map()
    hidden = np.setdiff1d(np.arange(graph.num_variables), graph.evidence.variable)

    for variable in np.random.default_rng(1).choice(hidden, min(100, len(hidden)), replace=False):
        for state in range(graph.variables.num_states[variable]):
            values = best.values.copy()
            values[variable] = state
            assert -graph.log_density(values) >= best.energy - 1e-10
