"""Whom the others are measured by."""

from __future__ import annotations

import numpy as np
import pytest

from hylift.errors import (
    UnsupportedError,
)
from hylift.graph import FactorGraph, boolean
from hylift.inference import Gibbs, MeanField, infer
from hylift.potentials import Table
from hylift.racing import Finish, race
from hylift.racing.entrants import Entrant
from hylift.racing.yardstick import choose_yardstick
from racing.stubs import Stub, coin


def yardstick_of(*stubs: object) -> tuple[str, str]:
    found = race(coin(), list(stubs)).yardstick  # type: ignore[arg-type]
    assert found is not None
    return found.label, found.reason


def test_without_exact_inference_an_exact_log_z_is_trusted_most() -> None:
    bound = Stub("bound", log_z=1.0, kind="lower bound")
    sure = Stub("sure", log_z=0.9, kind="exact")

    assert yardstick_of(bound, Gibbs(), sure) == ("sure", "its log Z is exact")


def test_then_draws_that_have_converged() -> None:
    bound = Stub("bound", log_z=1.0, kind="lower bound")

    assert yardstick_of(bound, Gibbs()) == ("Gibbs", "draws that have converged")


def finish_of(method: Stub, graph: FactorGraph) -> Finish:
    posterior = infer(graph, method, tasks=("marginals", "logz", "map"))
    return Finish(method.name, "none", 0.1, None, posterior)


def pair(hard: bool) -> FactorGraph:
    """Two Booleans that like to be equal, or have to be."""
    apart = 0.0 if hard else 0.1
    table = Table.from_values([[1.0, apart], [apart, 1.5]])
    return FactorGraph.build({"a": boolean, "b": boolean}, [(table, ["a", "b"])])


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (pair(hard=False), ("Gibbs", "draws that have converged")),
        (pair(hard=True), ("bound", "the highest lower bound on log Z")),
        (pair(hard=True).observe({"b": True}), ("Gibbs", "draws that have converged")),
    ],
    ids=["soft", "hard", "hard for one only"],
)
def test_draws_that_hard_constraints_may_part_come_after_a_bound(
    graph: FactorGraph, expected: tuple[str, str]
) -> None:
    drawn = finish_of(Stub("Gibbs", prob=0.5), coin())
    bound = finish_of(Stub("bound", log_z=0.1, kind="lower bound"), coin())
    candidates = [
        (Entrant("Gibbs", Gibbs(), "none"), drawn),
        (Entrant("bound", MeanField(), "none"), bound),
    ]

    found = choose_yardstick(graph, candidates)
    alone = choose_yardstick(graph, candidates[:1])

    assert found is not None
    assert (found.label, found.reason) == expected
    assert alone is not None
    assert alone.label == "Gibbs"


def test_what_has_diverged_or_is_impossible_is_no_yardstick() -> None:
    lost = Stub("lost", result="diverged", log_z=9.0, kind="lower bound")
    wrong = Stub("wrong", energy=np.inf, log_z=8.0, kind="lower bound")

    assert yardstick_of(lost, wrong, Stub(result="max_steps")) == (
        "stub",
        "nothing better is known",
    )

    found = race(coin(), [lost, wrong])

    assert found.yardstick is None
    assert "KL and l1: no method has marginals that others could be measured by." in str(found)
    with pytest.raises(UnsupportedError, match="no method of this race has marginals to trust"):
        _ = found.best


def test_the_notes_of_the_yardstick_are_told() -> None:
    trusted = Stub("trusted", log_z=1.0, kind="exact", notes=("It took a short cut.",))
    other = Stub("other", notes=("All is well.",))
    lost = Stub("lost", result="max_steps", notes=("More steps would help.",))

    lines = str(race(coin(), [trusted, other, lost])).splitlines()

    assert [line for line in lines if line.startswith("Note on")] == [
        "Note on trusted: It took a short cut.",
        "Note on lost: More steps would help.",
    ]


def test_then_the_highest_lower_bound() -> None:
    bounds = [Stub(f"bound {v}", log_z=v, kind="lower bound") for v in (1.0, 1.2, 0.5)]
    guess = Stub("guess", log_z=3.0)

    assert yardstick_of(guess, *bounds) == ("bound 1.2", "the highest lower bound on log Z")


def test_then_whatever_has_converged() -> None:
    lost = Stub("lost", result="max_steps")

    assert yardstick_of(lost, Stub()) == ("stub", "an estimate that has converged")
    assert yardstick_of(lost) == ("lost", "nothing better is known")


def test_estimates_that_a_bound_proves_wrong_are_told() -> None:
    bound = Stub("bound", log_z=2.0, kind="lower bound")
    low, fine = Stub("low", log_z=1.0), Stub("fine", log_z=2.5)

    found = race(coin(), [bound, low, fine])

    assert "log Z of low is too low: bound proves more." in str(found)
