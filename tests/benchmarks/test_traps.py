"""Planted traps: models on which approximations are confident and wrong."""

from __future__ import annotations

import numpy as np
import pytest

import hylift as hl
from benchmarks.families.score import Moments, score
from benchmarks.families.traps import TRAPS, balance, share, transition, trap
from tests import oracle

SMALL = [name for name in TRAPS if name != "a larger one"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_default_is_right_in_a_trap_or_doubtful(name):
    graph, exact = trap(name)

    found = score(graph, None, exact)

    assert found.refused is None
    assert not found.is_silent


@pytest.mark.parametrize("name", ["walls", "a narrow mode", "parities"])
def test_traps_have_several_explanations_of_which_ep_sees_one(name):
    graph, exact = trap(name)

    found = Moments.of(hl.infer(graph, hl.EP(), check=False))

    assert ((exact.probs > 0.1) & (exact.probs < 0.9)).any()
    assert np.abs(found.probs - exact.probs).max() > 0.1


def test_shares_at_a_transition_are_those_of_enumeration():
    truth = oracle.solve(transition(6, 3, 0.9).graph())

    assert truth.probs[0][0] == pytest.approx(share(6, 3, 0.9, balance(6, 3, 0.9)), abs=1e-9)
    assert truth.probs[0][0] == pytest.approx(0.5, abs=0.01)
