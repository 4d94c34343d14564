"""What particle belief propagation says about how far to trust it."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from experiments.instances import kalman
from hylift.inference import Exact, control, infer
from hylift.inference.held import arrays_of
from hylift.inference.message.layout import CutShortError, FloatArray
from hylift.inference.message.particle import EPBP
from hylift.inference.message.particle.density import MOST_OFF, densities
from hylift.inference.message.particle.factors import HybridTerms
from hylift.inference.message.particle.messages import ParticleMessages
from hylift.numerics import threads
from hylift.posterior import Posterior
from zoo import ZOO, ZooModel, gaussian_chain, toy_hybrid_mln

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


@pytest.fixture
def in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps look at the clock after every few factors."""
    monkeypatch.setattr(threads, "BLOCK", 8)


def press_ctrl_c_in_call(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while messages are sent, this time of all."""
    send, calls = ParticleMessages._sent, count(1)

    def sent(self: ParticleMessages, *arguments: object, **options: object) -> FloatArray:
        if next(calls) == number:
            signal.raise_signal(signal.SIGINT)
        own: Callable[..., FloatArray] = send
        return own(self, *arguments, **options)

    monkeypatch.setattr(ParticleMessages, "_sent", sent)


def numbers(posterior: Posterior) -> list[object]:
    table = posterior.marginals()
    return [table[name].to_pylist() for name in ("probs", "mean", "std")]


@pytest.mark.usefixtures("in_small_blocks")
def test_a_step_that_is_cut_short_changes_nothing() -> None:
    passing = ParticleMessages.start(HybridTerms.of(toy_hybrid_mln()), 20)
    passing.step(0.0)
    before = {name: array.copy() for name, array in arrays_of(passing.arrays()).items()}
    left = iter([True, True, False])
    passing.go_on = lambda: next(left)

    with pytest.raises(CutShortError):
        passing.adapt(0.3, 0.0)

    after = arrays_of(passing.arrays())
    del before["fewest"], after["fewest"]  # of the step before
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.slow
@pytest.mark.usefixtures("in_small_blocks")
def test_ctrl_c_within_a_step_returns_the_answer_of_the_step_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = toy_hybrid_mln()
    stopped = infer(graph, EPBP(20), callback=lambda step: step.step == 3, check=False)
    press_ctrl_c_in_call(4, monkeypatch)

    found = infer(graph, EPBP(20), check=False)

    assert found.solution.result == "interrupted"
    assert found.solution.steps == stopped.solution.steps == 3
    assert found.marginals()["probs"].to_pylist() == stopped.marginals()["probs"].to_pylist()


@pytest.mark.slow
@pytest.mark.usefixtures("in_small_blocks")
def test_a_run_that_was_cut_within_a_step_goes_on_from_the_step_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, path = toy_hybrid_mln(), tmp_path / "run.ckpt"
    whole = infer(graph, EPBP(20), check=False)
    press_ctrl_c_in_call(4, monkeypatch)

    infer(graph, EPBP(20), checkpoint=path, check=False)
    steps = list[int]()
    found = infer(
        graph, EPBP(20), checkpoint=path, check=False, callback=lambda step: steps.append(step.step)
    )

    assert steps[0] == 4
    assert numbers(found) == numbers(whole)


@pytest.mark.usefixtures("in_small_blocks")
def test_an_answer_without_time_for_a_step_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "GRACE", -1.0)

    found = infer(toy_hybrid_mln(), EPBP(20), seconds=1e-6, check=False)

    assert (found.solution.result, found.solution.steps) == ("out_of_time", 0)
    assert found.log_partition is None
    assert found.trust.verdict == "doubtful"
    assert np.isfinite(found.marginals()["mean"].to_numpy()).any()
    notes = " ".join(found.solution.notes)
    assert "too short for one step" in notes
    assert "reals are taken as Gaussian" in notes
