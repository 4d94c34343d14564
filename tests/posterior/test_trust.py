"""The verdict that every posterior has before any check."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hylift as hl
from hylift import (
    BP,
    BVI,
    EP,
    SMC,
    Exact,
    Gibbs,
    MaxWalkSAT,
    MeanField,
    MiniBuckets,
    ground,
    infer,
    parse,
)
from hylift.posterior import Posterior, Trust
from hylift.posterior.trust import VERDICTS
from hylift.words import doubt

CHAIN = """
    day = {0, ..., 4}
    Wet(day)
    depth(day): real
    0.7  Wet(d)
    normal(depth(d) | 2*Wet(d), 1)
    normal(depth(d) | depth(e), 1)  where e = d + 1
"""
LOOPS = "n = {0, ..., 3}\nA(n)\n0.3 A(x) ^ A(y) where x != y"


def posterior(method=None, rules: str = CHAIN, **settings) -> Posterior:
    return infer(ground(parse(rules), {}), method, **settings)


@pytest.mark.parametrize("tasks", ["marginals", ("marginals", "logz")])
def test_exact_answers_are_certified(tasks) -> None:
    trust = posterior(Exact(), tasks=tasks).trust

    assert trust.verdict == "certified"
    assert (trust.verdicts == "certified").all()
    assert np.nanmax(trust.prob_error) <= 1e-9
    assert np.nanmax(trust.mean_error) <= 1e-9


@pytest.mark.parametrize("method", [BP(), EP()], ids=str)
def test_messages_in_a_forest_are_certified(method) -> None:
    found = posterior(method, "A\nB\n1 A\n0.5 A v B", tasks="marginals")

    assert found.trust.verdict == "certified"


@pytest.mark.parametrize("method", [BVI(2), EP()], ids=str)
def test_approximations_are_unchecked_and_say_how_to_check(method) -> None:
    trust = posterior(method).trust

    assert trust.verdict == "unchecked"
    assert "hl.check_answer(posterior, graph)" in trust.why
    assert "--check" in trust.why.cli
    assert np.isinf(trust.prob_error[~np.isnan(trust.prob_error)]).all()


def test_an_answer_that_did_not_converge_is_doubtful() -> None:
    found = posterior(BVI(2, max_steps=1, restarts=1))

    assert found.solution.result == "max_steps"
    assert found.trust.verdict == "doubtful"
    assert found.trust.why == "BVI(2) ended early: not converged."


def test_a_doubt_of_the_method_is_quoted() -> None:
    found = posterior(Gibbs(chains=1))

    assert found.trust.verdict == "doubtful"
    assert found.trust.why in found.solution.doubts
    assert found.trust.why in found.solution.notes


def test_a_doubt_that_is_added_later_counts() -> None:
    found = posterior(Exact()).with_note(doubt("Something is off."))

    assert found.trust.verdict == "doubtful"
    assert found.trust.why == "Something is off."


def test_answers_without_marginals_have_a_verdict() -> None:
    assert posterior(Exact(), LOOPS, tasks="map").trust.verdict == "certified"
    assert posterior(MaxWalkSAT(), LOOPS, tasks="map").trust.verdict == "unchecked"
    assert posterior(MiniBuckets(), LOOPS, tasks="logz").trust.verdict == "certified"
    assert posterior(BVI(2), LOOPS, tasks="logz").trust.verdict == "unchecked"
    assert posterior(MeanField(), LOOPS, tasks="logz").trust.verdict == "unchecked"


def test_rounding_that_matters_takes_the_certificate_away() -> None:
    far = [hl.ConditionalQuadratic.gaussian([1.7e9 + late], [[1.0]]) for late in (0.0, 1.0)]
    factor = hl.ConditionalQuadratic.switch(far), ["late", "y"]
    graph = hl.FactorGraph.build({"late": hl.boolean, "y": hl.real}, [factor])

    found = hl.infer(graph.observe({"y": 1.7e9}), EP())

    assert found.trust.verdict != "certified"


def test_the_table_has_the_worst_first() -> None:
    found = posterior(Exact())
    ids = np.flatnonzero(~found.observed)
    trust = found.trust
    levels = np.zeros(len(ids), dtype=np.int8)
    levels[[2, 4]] = 3, 1
    errors = [np.where(np.isnan(e), e, 0.01) for e in (trust.prob_error, trust.mean_error)]
    mixed = Trust(found.variables, ids, "doubtful", "Why.", levels, *errors, 1 + errors[1])

    table = mixed.table()

    assert table.column_names == ["atom", "verdict", "prob_error", "mean_error", "std_factor"]
    names = found.variables.names
    assert table["atom"].to_pylist()[:2] == [names[int(ids[2])], names[int(ids[4])]]
    assert table["verdict"].to_pylist()[:3] == ["doubtful", "checked", "certified"]
    assert [v is None for v in table["prob_error"].to_pylist()] == [
        v is not None for v in table["mean_error"].to_pylist()
    ]


@pytest.mark.parametrize(
    "method", [Exact(), BVI(2), Gibbs(chains=1, draws=50, warm_up=10)], ids=str
)
def test_saved_answers_keep_their_verdict(method, tmp_path: Path) -> None:
    found = posterior(method)
    found.save(tmp_path / "found.hylift")
    found.write(tmp_path / "found.json")

    loaded = Posterior.load(tmp_path / "found.hylift")

    assert (loaded.trust.verdict, loaded.trust.why) == (found.trust.verdict, found.trust.why)
    assert loaded.solution.doubts == found.solution.doubts
    written = json.loads((tmp_path / "found.json").read_text())["trust"]
    assert written["verdict"] == found.trust.verdict
    assert written["why"] == found.trust.why


def test_a_checked_answer_is_saved_with_its_errors(tmp_path: Path) -> None:
    found = posterior(Exact())
    ids = np.flatnonzero(~found.observed)
    trust = Trust.same(found.variables, ids, "checked", "It agrees.", 0.01)
    Posterior(
        found.variables, found.observed, found.solution, all_marginals=found.all_marginals,
        checked=trust,
    ).save(tmp_path / "found.hylift")  # fmt: skip

    loaded = Posterior.load(tmp_path / "found.hylift").trust

    assert (loaded.verdict, loaded.why) == ("checked", "It agrees.")
    np.testing.assert_array_equal(loaded.mean_error, trust.mean_error)
    np.testing.assert_array_equal(loaded.std_factor, trust.std_factor)


def test_further_values_take_a_certificate_away_and_keep_doubts() -> None:
    found = posterior(BVI(2)).with_note(doubt("Something is off."))

    given = found.given({"Wet(0)": True})

    assert given.trust.verdict == "doubtful"
    assert given.trust.why == "Something is off."


def test_verdicts_are_ordered_from_the_best() -> None:
    assert VERDICTS == ("certified", "checked", "unchecked", "doubtful")


def test_tables_of_marginals_have_the_verdict_on_each_variable(tmp_path: Path) -> None:
    found = infer(ground(parse(CHAIN), {"Wet(0)": True})).with_note(doubt("Something is off."))

    found.write(tmp_path / "found.csv")

    assert found.marginals(["Wet(0)", "Wet(1)"])["verdict"].to_pylist() == [None, "doubtful"]
    assert found.table("depth")["verdict"].to_pylist() == ["doubtful"] * 5
    assert found.to_pandas("Wet").verdict.tolist() == ["doubtful"] * 4
    header, *rows = (tmp_path / "found.csv").read_text().splitlines()
    assert header.endswith(',"verdict"')
    assert all(row.endswith(',"doubtful"') for row in rows)


def test_a_state_of_the_name_verdict_keeps_its_column() -> None:
    rules = 'd = {0, 1}\nkind = {verdict, other}\nK(d, kind!)\n1 K(x, "verdict")'

    table = posterior(Exact(), rules).table("K")

    assert table.column_names == ["d", "verdict", "other"]
    assert table["verdict"].to_pylist() == pytest.approx([np.e / (np.e + 1)] * 2)


@pytest.mark.parametrize("method", [Gibbs(draws=100), SMC(), BVI(2), EP()], ids=str)
def test_a_check_is_no_verdict_on_an_assignment(method) -> None:
    found = posterior(method, LOOPS, tasks="map", check=True)

    assert found.trust.verdict in ("unchecked", "doubtful")
    assert "agree" not in found.trust.why
    assert found.trust.verdict == "doubtful" or "assignment is the best" in found.trust.why


def test_a_doubtful_answer_says_what_to_do() -> None:
    unchecked = posterior(BVI(2)).with_note(doubt("Something is off.")).trust
    ids, levels = unchecked.ids, unchecked.verdict_id
    errors = np.full(len(ids), 0.2)
    after = Trust(unchecked.variables, ids, "doubtful", "Why.", levels, errors, errors, 1 + errors)

    assert posterior(Exact()).trust.advice == ""
    assert "A check, hl.check_answer(posterior, graph), or the default" in unchecked.advice
    assert "--check" in unchecked.advice.cli
    assert repr(unchecked).endswith(f"Something is off. {unchecked.advice})")
    assert after.advice == "More seconds, or SMC(particles=4096), may settle it."
    assert after.advice.cli == "More --seconds, or --method smc --particles 4096, may settle it."
