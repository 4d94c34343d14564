"""Methods that refuse or fail, evidence that is impossible, and arguments that are none."""

from __future__ import annotations

import re

import numpy as np
import pytest

from hylift.errors import (
    ImpossibleEvidenceError,
    UnknownNameError,
    UnsupportedError,
)
from hylift.graph import FactorGraph, boolean
from hylift.inference import BVI, Exact, Gibbs, Request, infer
from hylift.posterior import Posterior
from hylift.potentials import Table
from hylift.racing import race
from racing.stubs import Empty, Given, Nameless, Stub, coin


def test_errors_of_the_model_are_raised_where_nobody_finishes() -> None:
    impossible = Stub("one", error=ImpossibleEvidenceError("the evidence has probability 0"))
    refusing = Stub("two", error=UnsupportedError("no reals here"))

    with pytest.raises(ImpossibleEvidenceError, match="the evidence has probability 0"):
        race(coin(), [refusing, impossible])


def test_one_method_that_fails_does_not_end_the_race() -> None:
    full, broken = Stub("full", error=MemoryError()), Stub("broken", error=RuntimeError("boom"))
    mute, empty = Stub("mute", error=RuntimeError()), Empty()

    found = race(coin(), [full, broken, mute, empty, Stub()])

    assert [one.label for one in found] == ["stub"]
    assert [(one.has_failed, one.reason) for one in found.skipped] == [
        (False, "there is not enough memory"),
        (True, "failed: RuntimeError: boom"),
        (True, "failed: RuntimeError"),
        (True, "failed: MethodError: solve returned None, not a Posterior"),
    ]
    assert found.table()["result"].to_pylist() == ["converged", "skipped", *["failed"] * 3]
    assert [row["result"] for row in found.to_dict()["skipped"]] == ["skipped", *["failed"] * 3]
    assert "  broken  failed: RuntimeError: boom" in str(found).splitlines()
    with pytest.raises(UnknownNameError, match=r"^'broken' failed: RuntimeError: boom$"):
        found["broken"]


def test_marginals_that_cannot_be_compared_do_not_end_the_race() -> None:
    other = FactorGraph.build({"b": boolean}, [(Table.from_values([1, 3]), ["b"])])
    strange = infer(other, Exact(), tasks=("marginals", "logz", "map"))

    found = race(coin(), ["exact", Given(strange)])

    assert [one.label for one in found] == ["exact"]
    assert found.skipped[0].reason.startswith("'a' is not the same variable in both posteriors")


def test_a_failure_is_raised_where_nobody_finishes() -> None:
    with pytest.raises(RuntimeError, match=r"^boom$"):
        race(coin(), [Stub("one", error=UnsupportedError("no")), Stub(error=RuntimeError("boom"))])


def interrupted(request: Request) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_ends_the_race_and_keeps_what_has_finished() -> None:
    stubs = [Stub("first"), Stub("second", asked=interrupted), Stub("third")]

    found = race(coin(), stubs)

    assert [one.label for one in found] == ["first"]
    assert [one.label for one in found.skipped] == ["second", "third"]
    assert "interrupted" in found.skipped[0].reason


def test_an_interrupt_before_anything_has_finished_is_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        race(coin(), [Stub(asked=interrupted)])


def test_a_proof_that_the_evidence_is_impossible_ends_the_race() -> None:
    proof = Stub("one", error=ImpossibleEvidenceError("the evidence has probability 0"))

    with pytest.raises(ImpossibleEvidenceError, match="the evidence has probability 0"):
        race(coin(), [Stub("two"), proof])


def test_draws_that_know_no_place_to_begin_are_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> Posterior:
        raise ImpossibleEvidenceError("local search found no assignment")

    monkeypatch.setattr(Gibbs, "solve", lost)

    found = race(coin(), ["gibbs", Stub()])

    assert [one.reason for one in found.skipped] == ["local search found no assignment"]


def test_reasons_are_listed_where_all_refuse() -> None:
    refusing = [Stub(name, error=UnsupportedError(f"{name} says no")) for name in ("one", "two")]

    with pytest.raises(UnsupportedError, match="no method of the race takes this graph:\n  one: o"):
        race(coin(), refusing)
    with pytest.raises(UnsupportedError, match=r"^one says no$"):
        race(coin(), refusing[:1])


def test_an_impossible_model_is_told_once() -> None:
    graph = FactorGraph.build({"a": boolean}, [(Table.from_values([0, 1]), ["a"])])

    with pytest.raises(ImpossibleEvidenceError):
        race(graph.observe({"a": False}), ["exact", "bvi"])


@pytest.mark.parametrize(
    ("alike", "text"), [(False, "The limit is "), (True, r"would take about .* more than 0\.001")]
)
def test_exact_inference_refuses_what_would_take_too_long(alike: bool, text: str) -> None:
    size = 16
    pairs = [(i, j) for i in range(size) for j in range(i)]
    # All pairs alike are summed by counts, whose tables are small.
    strength = np.full(len(pairs), 0.1) if alike else np.linspace(0.1, 0.2, len(pairs))
    table = Table(strength[:, None, None] * np.eye(2))
    graph = FactorGraph.build(
        {f"x{i}": boolean for i in range(size)}, [(table, [(f"x{i}", f"x{j}") for i, j in pairs])]
    )

    found = race(graph, ["exact", "mean-field"], seconds=1e-3)

    refused = found.skipped[0].reason if found.skipped else found["exact"].refused
    assert refused is not None
    assert re.search(text, refused)


@pytest.mark.parametrize(
    ("methods", "text"),
    [
        (["bvii"], "there is no method 'bvii': choose among exact, .* Did you mean 'bvi'?"),
        ([BVI], "a method is a value such as BVI\\(\\), or a name such as 'bvi', not "),
        ([3], "a method is a value such as BVI\\(\\), or a name such as 'bvi', not 3"),
        ([], "a race needs at least one method"),
        (3, "a method is a value such as BVI\\(\\), or a name such as 'bvi', not 3"),
        (BVI, "a method is a value such as BVI\\(\\), or a name such as 'bvi', not "),
        (
            [Exact(), Nameless()],
            "a method of a race has a name, by which it is shown: give Nameless\\(\\) the "
            "attribute 'name', which is a text",
        ),
    ],
)
def test_what_is_no_method_is_refused(methods: object, text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        race(coin(), methods)  # type: ignore[arg-type]


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="seconds must be a positive number, not 0"):
        race(coin(), seconds=0)
    with pytest.raises(UnsupportedError, match="a race takes a FactorGraph"):
        race("model")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=r"^there is no lift 'coarse': choose among exact"):
        race(coin(), [Exact(), Stub()], lift="coarse")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=r"^seed must be a non-negative integer, "):
        race(coin(), seed=-1)
    for seconds in (True, "3", None, float("nan")):
        with pytest.raises(UnsupportedError, match=r"^seconds must be a positive number, not "):
            race(coin(), seconds=seconds)  # type: ignore[arg-type]
