"""What particle belief propagation says about how far to trust it."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.instances import kalman
from hylift.inference import Exact, infer
from hylift.inference.message.particle import EPBP
from hylift.inference.message.particle.density import MOST_OFF, densities
from hylift.inference.message.particle.factors import Factors
from hylift.inference.message.particle.passing import Passing
from zoo import ZOO, ZooModel, gaussian_chain

NOT_TRUSTED = "The marginals are not to be trusted, even where messages have settled: "


@pytest.mark.parametrize("seed", [0, 4])
def test_marginals_of_few_effective_particles_are_said_not_to_be_trusted(seed: int) -> None:
    graph = kalman.generated("cycle", seed, "clean").graph

    found = infer(graph, EPBP(20))

    assert found.solution.result == "converged"
    assert np.isinf(infer(graph, Exact()).compare(found).kl).any()
    (note,) = [note for note in found.solution.notes if note.startswith(NOT_TRUSTED)]
    assert "1 of 79 beliefs rest on few effective particles" in note
    assert note.endswith("Use many more particles, or another method, such as BVI.")


def test_particles_too_few_for_a_chain_are_said_not_to_be_trusted() -> None:
    few, enough = infer(gaussian_chain(), EPBP(8)), infer(gaussian_chain(), EPBP(20))

    assert any(note.startswith(NOT_TRUSTED) for note in few.solution.notes)
    assert not any(note.startswith(NOT_TRUSTED) for note in enough.solution.notes)


@pytest.mark.parametrize("particles", [20, 50])
@pytest.mark.parametrize("model", ZOO, ids=str)
def test_particles_that_are_enough_are_not_complained_about(
    model: ZooModel, particles: int
) -> None:
    """Modes that lie apart leave few effective particles too, over which sums are right."""
    notes = infer(model.graph(), EPBP(particles)).solution.notes

    assert not any("not to be trusted" in note for note in notes)


def test_sums_over_particles_that_are_far_from_any_integral_are_not_measured_further() -> None:
    passing = Passing.start(Factors.of(gaussian_chain()), 20)
    passing.step(0.0)
    passing.height += 1e4  # as swings leave them

    found = densities(passing, lambda: True)

    assert found is not None
    np.testing.assert_allclose(found.error, MOST_OFF)
