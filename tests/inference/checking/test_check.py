"""Checks of answers by runs that know nothing of them, beside exact answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.families.practice import written
from benchmarks.families.score import Moments, wrong
from hylift import BVI, EP, SMC, Exact, Gibbs, MeanField, check_answer, ground, infer, parse
from hylift.errors import EvidenceError, UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference import attempts
from hylift.inference.attempts import Attempts, Clock
from hylift.inference.checking import check
from hylift.inference.checking.check import Check, Limits
from hylift.inference.checking.gaps import Gaps, missed
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.lifting import lift
from hylift.posterior import LogPartition, Posterior
from hylift.posterior.trust import relative_size
from hylift.progress import silent

WALK = """
    day = {0, ..., 5}
    Wet(day)
    level(day): real
    -0.3  Wet(d)
    normal(level(0) | 0, 4)
    normal(level(e) | level(d) + 2*Wet(d), 1)  where e = d + 1
    0.8  Wet(d) <=> Wet(e)  where e = d + 1
"""
ROOMS = """
    room = {0, ..., 2}
    Heated(room)
    temperature(room): real
    -0.5  Heated(r)
    normal(temperature(r) | 12 + 8*Heated(r), 4)
    -0.1  (temperature(r) - temperature(s))^2  where r != s
"""
BOUNDED = "x: real[0, 4]\ny: real[0, 4]\nA\n0.5 A\nnormal(x | 3 + A, 1)\nnormal(y | x, 1)"


def graph_of(rules: str, evidence: dict[str, float] | None = None) -> FactorGraph:
    return ground(parse(rules), evidence or {})


def request() -> Request:
    return Request(frozenset({"marginals", "logz"}), 0, silent)


def check_of(graph: FactorGraph, answer: Posterior | None, keeps: bool = True) -> Check:
    asked = request()
    return Check(Attempts(Prepared.of(graph), asked, None, Clock(None, asked.began)), answer, keeps)


def assert_covers(found: Posterior, exact: Posterior) -> None:
    """The stated errors hold, up to twice."""
    gaps = Gaps.between(found, exact)
    trust = found.trust
    for gap, error in (
        (gaps.prob, trust.prob_error),
        (gaps.mean, trust.mean_error),
        (gaps.log_std, np.log(trust.std_factor)),
    ):
        known = ~np.isnan(gap)
        assert (gap[known] <= 2 * error[known]).all()


@pytest.mark.parametrize("method", [EP(), Gibbs(), SMC()], ids=str)
def test_a_right_answer_is_confirmed_and_kept(method) -> None:
    graph = graph_of(WALK, {"level(5)": 4.0})
    answer = infer(graph, method)

    found = check_answer(answer, graph, seconds=60)

    assert found.trust.verdict == "checked"
    assert f"agree with {method.name}" in found.trust.why
    assert found.all_marginals is answer.all_marginals
    assert_covers(found, infer(graph, Exact()))


def test_a_wrong_answer_is_replaced_and_the_note_says_so() -> None:
    graph = graph_of(ROOMS)
    answer, exact = infer(graph, MeanField()), infer(graph, Exact())
    assert Gaps.between(answer, exact).size.max() > 1

    found = check_answer(answer, graph, seconds=60)

    assert found.trust.verdict == "checked"
    assert found.solution.method == "SMC"
    assert any("mean field was off in" in note for note in found.solution.notes)
    assert Gaps.between(found, exact).size.max() < 1
    assert_covers(found, exact)


def test_bounded_reals_are_checked_too() -> None:
    graph = graph_of(BOUNDED)

    found = check_answer(infer(graph, BVI(3)), graph, seconds=60)

    assert found.trust.verdict in ("checked", "doubtful")
    assert Gaps.between(found, infer(graph, Exact())).size.max() < 1


def test_a_certified_answer_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(WALK)
    answer = infer(graph, Exact())
    monkeypatch.setattr(attempts, "solve", None)

    assert check_answer(answer, graph) is answer


def test_a_loaded_answer_is_certified_by_no_one_else(tmp_path: Path) -> None:
    graph = graph_of(ROOMS)
    infer(graph, Exact()).save(tmp_path / "found.npz")

    found = check_answer(Posterior.load(tmp_path / "found.npz"), graph, seconds=60)

    assert found.trust.verdict == "checked"


def test_no_run_is_compared_with_itself() -> None:
    graph = graph_of(WALK)

    found = infer(graph, SMC(particles=32), check=True, seed=4)

    assert found.solution.method == "SMC"
    assert found.solution.seed == 4
    again = infer(graph, SMC(particles=32), check=False, seed=4)
    assert (found.trust.prob_error[~np.isnan(found.trust.prob_error)] > 0).all()
    np.testing.assert_array_equal(
        found.marginals()["mean"].to_numpy(), again.marginals()["mean"].to_numpy()
    )


def test_an_error_that_is_not_known_is_never_right() -> None:
    nan, small = np.array([np.nan, np.nan, 0.01]), np.array([0.1, np.nan, np.nan])

    size = relative_size(nan, small, np.array([np.nan, 1.0, np.nan]))

    assert np.isinf(size[:2]).all()
    assert size[2] == pytest.approx(0.2)


def test_infer_checks_the_answer_of_a_named_method() -> None:
    graph = graph_of(WALK)

    found = infer(graph, EP(), check=True)

    assert found.solution.method == "EP"
    assert found.trust.verdict == "checked"
    with pytest.raises(UnsupportedError, match="check must be True or False, not 'yes'"):
        infer(graph, check="yes")


def test_the_same_seed_gives_the_same_verdict() -> None:
    graph = graph_of(ROOMS)

    one, two = (infer(graph, exact=False, seed=3) for _ in range(2))

    assert one.trust.why == two.trust.why
    np.testing.assert_array_equal(one.trust.prob_error, two.trust.prob_error)


def test_what_cannot_be_afforded_is_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(WALK)
    monkeypatch.setattr(check, "particle_seconds", lambda *_: 1e6)
    monkeypatch.setattr(check, "affordable_chains", lambda *_: None)

    found = check_answer(infer(graph, EP()), graph)

    assert found.trust.verdict == "unchecked"
    assert "hl.check_answer(posterior, graph, seconds=…)" in found.trust.why


def test_a_lifted_graph_is_unchecked() -> None:
    lifted = lift(graph_of("n = {0, ..., 5}\nA(n)\n0.3 A(x)\n0.1 A(x) ^ A(y)")).graph

    found = check_answer(infer(lifted, BVI(2)), lifted)

    assert found.trust.verdict == "unchecked"


@pytest.mark.parametrize("limits", [Limits("a proof", 1e3), Limits("a proof", -np.inf, -1e3)])
def test_log_z_beyond_a_proven_bound_is_doubtful(
    limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(WALK)
    monkeypatch.setattr(Check, "_limits", lambda self, flat: [limits])

    found = check_of(graph, infer(graph, EP())).run()

    assert found is not None
    assert found.trust.verdict == "doubtful"
    assert "by the bound of a proof: modes may have been missed." in found.trust.why


def test_a_needle_that_only_search_finds_is_doubtful() -> None:
    """Four conjunctions of twelve atoms each: no step towards them is rewarded."""
    rng = np.random.default_rng(1)
    scopes = [sorted({*rng.choice(20, 12, replace=False).tolist()}) for _ in range(4)]
    assert len(set().union(*scopes)) == 20
    rules = ["n = {0, ..., 19}", "S(n)", "-0.1  S(x)", "0.05  S(x) <=> S(y)  where y = x + 1"]
    rules += ["3.966  " + " ^ ".join(f"S({i})" for i in scope) for scope in scopes]
    graph = graph_of("\n".join(rules))
    exact = infer(graph, Exact())

    found = infer(graph, exact=False)

    assert Gaps.between(found, exact).size.max() <= 1 or found.trust.verdict == "doubtful"


def test_a_mode_that_an_informed_run_knows_must_be_in_a_flat_one() -> None:
    graph = graph_of(ROOMS)
    flat = infer(graph, Exact())
    (total,) = {flat.log_partition.value}
    probs = np.where(np.isnan(Gaps.between(flat, flat).prob), np.nan, 0.0)

    same = missed(flat, flat)
    elsewhere = infer(graph_of(ROOMS.replace("-0.5 ", "5 ")), Exact())
    known = replace(elsewhere, log_partition=LogPartition(total, "estimate"))
    improbable = replace(elsewhere, log_partition=LogPartition(total - 20, "estimate"))

    np.testing.assert_allclose(same[0], probs, atol=1e-12)
    assert np.nanmax(missed(flat, known)[0]) > 0.05
    assert np.nanmax(missed(flat, improbable)[0]) < 1e-6
    assert np.nanmax(missed(flat, improbable)[1]) < 1e-3
    assert np.nanmax(missed(flat, known)[1]) > 0.25
    assert np.nanmax(missed(flat, improbable)[2]) == 1.0


def test_particles_in_doubt_are_followed_by_more() -> None:
    graph = graph_of(ROOMS)
    own = check_of(graph, None)

    found = own.run()

    assert found is not None
    assert found.trust.verdict == "checked"
    assert np.nanmax(found.trust.size) <= 0.5 or own.attempts.notes


def test_the_graph_must_be_that_of_the_answer() -> None:
    graph, other = graph_of(WALK), graph_of(ROOMS)
    answer = infer(graph, EP())

    with pytest.raises(UnsupportedError, match="cannot be compared"):
        check_answer(answer, graph_of("A\n1 A"))
    with pytest.raises((UnsupportedError, EvidenceError)):
        check_answer(answer, other)
    exact = infer(graph_of(WALK, {"level(5)": 4.0}), Exact())
    with pytest.raises(EvidenceError, match="observed with different values"):
        check_answer(exact, graph_of(WALK, {"level(5)": -9.0}))
    with pytest.raises(UnsupportedError, match="of another model"):
        check_answer(exact, graph_of(WALK.replace("-0.3", "0.3"), {"level(5)": 4.0}))
    with pytest.raises(EvidenceError, match="is observed in one posterior"):
        check_answer(answer, graph_of(WALK, {"level(0)": 1.0}))
    with pytest.raises(UnsupportedError, match="takes a posterior"):
        check_answer(graph, answer)


def test_a_checked_answer_is_saved_with_its_errors(tmp_path: Path) -> None:
    graph = graph_of(WALK)
    found = infer(graph, exact=False)
    found.save(tmp_path / "found.npz")

    loaded = Posterior.load(tmp_path / "found.npz")

    assert loaded.trust.table().equals(found.trust.table())


def test_distances_between_answers() -> None:
    rules = "A\nx: real\n{} A\nnormal(x | {}, {})"
    one = infer(graph_of(rules.format(-1.0, 1, 4)), Exact())
    two = infer(graph_of(rules.format(1.0, 2, 1)), Exact())

    gaps = Gaps.between(one, two)

    at = {name: i for i, name in enumerate(one.variables.names.render(np.arange(2)).to_pylist())}
    assert gaps.prob[at["A"]] == pytest.approx(np.tanh(0.5))
    assert np.isnan(gaps.prob[at["x"]])
    assert gaps.mean[at["x"]] == pytest.approx(1.0)
    assert gaps.log_std[at["x"]] == pytest.approx(np.log(2))


def test_particles_answer_where_chains_leave_doubts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = written("clustering", 18).graph()
    monkeypatch.setattr(check, "PARTICLES", (64,))

    found = infer(graph, exact=False)

    assert found.trust.verdict == "doubtful"
    assert found.solution.method == "SMC"
    assert wrong(Moments.of(found), Moments.of(infer(graph, Exact()))) is None


def test_many_parts_are_not_doubtful_because_their_errors_add_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "PARTICLES", (64,))
    rules = """
        part = {0, ..., 59}
        n = {0, ..., 7}
        S(part, n)
        -0.4  S(p, x)
        0.8  S(p, x) ^ S(p, y)  where x < y
    """
    graph = graph_of(rules)

    found = infer(graph, SMC(), check=True, rewrite=False)

    assert found.log_partition is not None
    assert found.log_partition.error > check.UNSURE_SUM
    assert found.trust.verdict == "checked"


def test_a_run_that_is_in_doubt_confirms_no_variable() -> None:
    source = "x: real[0,100]\ny: real[0,100]\n30 exp(0 - 100*(x-37.123)^2 - 100*(y-12.3)^2)"

    found = infer(ground(parse(source)), exact=False)

    assert found.trust.verdict == "doubtful"
    assert "checked" not in found.trust.table()["verdict"].to_pylist()


HEAVY = "p: real[0, inf]\nlognormal(p | 0, 4)"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [(HEAVY, True), ("p: real\nstudent(p | 0, 1, 3)", False), (BOUNDED, False), (WALK, False)],
)
def test_tails_without_variance_are_seen_in_draws(rules: str, expected: bool) -> None:
    graph = graph_of(rules)
    draws = infer(graph, SMC(), check=False).draws

    found = check_of(graph, None)._has_heavy_tail(draws)

    assert found.any() == expected


@pytest.mark.slow
@pytest.mark.parametrize(("exact", "seed"), [(False, 0), (True, 1)])
def test_deviations_that_draws_cannot_know_are_not_confirmed(exact: bool, seed: int) -> None:
    """Most of the variance is beyond all draws, where groups agree that nothing is."""
    found = infer(graph_of(HEAVY), exact=exact, seed=seed)

    assert found.trust.verdict == ("unchecked" if exact else "doubtful")
    if exact:
        assert found.marginal("p").std == pytest.approx(54.1, rel=0.01)
