"""The quick check of approximations by a run from flat starts."""

from __future__ import annotations

import numpy as np
import pytest

import hylift as hl
from benchmarks.certified.models import Rooms
from hylift.errors import UnsupportedError
from hylift.inference.checking import quick
from hylift.inference.message.particle import method
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.progress import silent

EASY = """
    n = {0, ..., 4}
    A(n)
    B(n)
    0.3  A(x)
    0.2  A(x) ^ B(y)
"""


def easy() -> hl.FactorGraph:
    return hl.ground(hl.parse(EASY), {})


def test_an_answer_in_one_of_two_modes_is_doubtful() -> None:
    found = hl.infer(Rooms(3).graph(), hl.EPBP())

    assert found.trust.verdict == "doubtful"
    assert found.solution.doubts[0].startswith(
        "This answer may be off: by a short run of SMC from flat starts "
    )


def test_an_answer_that_has_used_up_its_time_is_checked_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, bvi = Rooms(3).graph(), hl.BVI(3)
    request = Request(frozenset({"marginals", "logz"}), 0, silent, seconds=1e-3)
    found = hl.infer(graph, bvi, check=False)
    monkeypatch.setattr(quick, "LEAST_SECONDS", 60.0)

    checked = quick.with_quick_check(found, bvi, Prepared.of(graph), request)

    assert (found.trust.verdict, checked.trust.verdict) == ("unchecked", "doubtful")
    assert checked.solution.doubts[0].startswith("This answer may be off: by a short run of SMC")


def test_a_bound_alone_is_not_held_against_marginals() -> None:
    graph = Rooms(3).graph()

    bound = hl.infer(graph, hl.MeanField(), tasks="logz", rewrite=False)
    estimate = hl.infer(graph, hl.BVI(3), tasks="logz", rewrite=False)

    assert (bound.log_partition.kind, bound.solution.doubts) == ("lower bound", ())
    assert estimate.trust.verdict == "doubtful"


def test_a_right_answer_is_not() -> None:
    found = hl.infer(easy(), hl.BVI(3))

    assert found.solution.doubts == ()
    assert found.trust.verdict == "unchecked"
    assert found.trust.why.startswith("A short run of SMC from flat starts agrees; ")


def test_a_suspicion_is_dispelled_where_it_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = hl.ground(hl.parse(EASY + "x(n): real\nnormal(x(i) | 0.1*A(i), 1)"), {})
    monkeypatch.setattr(method, "LOST", np.inf)

    suspected = hl.infer(graph, hl.EPBP(), check=False)
    found = hl.infer(graph, hl.EPBP())

    assert suspected.trust.verdict == "doubtful"
    assert suspected.solution.doubts[0].startswith("While proposals were adapted, 'x(")
    assert found.trust.verdict == "unchecked"
    assert set(found.solution.notes) == set(suspected.solution.notes)
    assert found.solution.doubts == ()


def test_a_suspicion_beside_a_disagreement_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(method, "LOST", np.inf)

    found = hl.infer(Rooms(3).graph(), hl.EPBP())

    assert found.trust.verdict == "doubtful"
    assert len(found.solution.doubts) == 2


def test_it_changes_no_marginal_and_can_be_left_out() -> None:
    graph = Rooms(3).graph()
    checked, alone = hl.infer(graph, hl.EPBP()), hl.infer(graph, hl.EPBP(), check=False)

    assert alone.solution.doubts == ()
    assert checked.compare(alone).max_l1 == 0.0


def test_the_same_seed_gives_the_same_doubt() -> None:
    found = [hl.infer(Rooms(30, -0.028).graph(), hl.BVI(3), seed=7) for _ in range(2)]

    assert found[0].solution.notes == found[1].solution.notes


def test_what_is_too_large_for_it_is_called_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "MOST_REWRITTEN", 1)

    found = hl.infer(easy(), hl.BVI(3))

    assert found.trust.verdict == "unchecked"
    assert quick.UNCHECKED in found.solution.notes


def test_functions_of_reals_with_two_modes_are_seen() -> None:
    graph = hl.FactorGraph.build(
        {"x": hl.real},
        [(hl.Function(lambda x: -(np.abs(np.abs(x) - 4) ** 1.5), num_reals=1), ["x"])],
    )

    found = hl.infer(graph, hl.MeanField())

    assert found.trust.verdict == "doubtful"


def test_check_must_be_true_or_false() -> None:
    with pytest.raises(UnsupportedError, match="check must be True or False, not 'no'"):
        hl.infer(easy(), hl.BVI(3), check="no")  # type: ignore[arg-type]
