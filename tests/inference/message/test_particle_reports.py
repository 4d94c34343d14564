"""What particle belief propagation says about how far to trust it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from experiments.instances import kalman
from hylift.inference import Exact, infer
from hylift.inference.message.particle import EPBP
from hylift.inference.message.particle.density import MOST_OFF, densities
from hylift.inference.message.particle.factors import HybridTerms
from hylift.inference.message.particle.messages import ParticleMessages
from zoo import ZOO, ZooModel, gaussian_chain

NOT_TRUSTED = "The marginals are not to be trusted, even if messages have converged: "


@pytest.mark.parametrize("seed", [4, 9])
def test_bad_marginals_are_said_not_to_be_trusted(seed: int) -> None:
    graph = kalman.generated("cycle", seed, "clean").graph

    found = infer(graph, EPBP(20))

    assert infer(graph, Exact()).compare(found).kl.max() > 1
    (note,) = [note for note in found.solution.notes if note.startswith(NOT_TRUSTED)]
    # The threshold is 5 %: rounding, which differs between processors, does not decide.
    assert _change(note) > 10
    assert note.endswith("Use many more particles, or another method, such as BVI.")


@pytest.mark.slow
def test_no_bad_marginals_come_without_a_note() -> None:
    num_bad = 0
    for seed in range(40):
        graph = kalman.generated("cycle", 100 + seed, "clean").graph
        found = infer(graph, EPBP((8, 12, 20, 30, 50)[seed % 5]))
        if infer(graph, Exact()).compare(found).kl.max() > 1:
            num_bad += 1
            assert any("not to be trusted" in note for note in found.solution.notes)

    assert num_bad > 10


def _change(note: str) -> int:
    """The change of a belief that a note tells, in per cent."""
    found = re.search(r"changes the belief about 'x\(\d+,\d+\)' by (\d+)%", note)
    assert found is not None
    return int(found[1])


def test_beliefs_do_not_depend_on_where_enough_particles_lie() -> None:
    few, enough = (
        ParticleMessages.start(HybridTerms.of(gaussian_chain()), number) for number in (8, 30)
    )
    for passing in (few, enough):
        for _ in range(30):
            passing.adapt(0.5, 0.0)
        for _ in range(30):
            passing.step(0.0)
    before = enough.message.copy()

    unsure = enough.sensitivity(0.0)

    assert unsure.max() < 1e-6
    assert few.sensitivity(0.0).max() > 0.05
    np.testing.assert_array_equal(enough.message, before)


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
    passing = ParticleMessages.start(HybridTerms.of(gaussian_chain()), 20)
    passing.step(0.0)
    passing.height += 1e4  # as swings leave them

    found = densities(passing, lambda: True)

    assert found is not None
    np.testing.assert_allclose(found.error, MOST_OFF)
