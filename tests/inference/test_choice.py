"""Default method selection, and its notes."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, boolean
from hylift.grounding import ground
from hylift.inference import BVI, EP, SMC, Exact, Gibbs, Method, attempts, choice, infer
from hylift.inference.checking import check, cost
from hylift.language import parse
from hylift.lifting import lift
from hylift.posterior import Posterior
from hylift.potentials import Table
from zoo import ZOO, ZooModel, counted_factors, friends_and_smokers, toy_hybrid_mln

CHEAP = "Exact inference was chosen, because it is cheap here."


def grid(size: int) -> FactorGraph:
    """Booleans on a grid, each linked to its neighbours."""
    cells = list(itertools.product(range(size), repeat=2))
    pairs = [[(i, j), (i + 1, j)] for i, j in cells if i + 1 < size]
    pairs += [[(i, j), (i, j + 1)] for i, j in cells if j + 1 < size]
    names = {cell: f"c({cell[0]},{cell[1]})" for cell in cells}
    alike = Table.shared([[0.3, 0.0], [0.0, 0.3]])
    return FactorGraph.build(
        dict.fromkeys(names.values(), boolean),
        [
            (alike, [[names[one], names[other]] for one, other in pairs]),
            (Table.shared([0.0, 0.1]), [[names[cells[0]]]]),
        ],
    )


@pytest.mark.parametrize("model", ZOO, ids=str)
def test_small_models_are_solved_exactly(model: ZooModel) -> None:
    posterior = infer(model.graph())

    expected = infer(model.graph(), Exact()).log_partition
    assert posterior.solution.method == "exact"
    assert posterior.solution.notes[0] == CHEAP
    assert posterior.log_partition is not None
    assert expected is not None
    assert posterior.log_partition.value == pytest.approx(expected.value, rel=1e-12)


def not_cheap(method: str, reason: str) -> str:
    return f"{method} was chosen, because exact inference is not cheap here: {reason}"


def test_wide_models_are_sampled_with_the_reason() -> None:
    posterior = infer(grid(24), seed=2, tasks="marginals")

    note = posterior.solution.notes[0]
    assert posterior.solution.method == "SMC"
    assert note.startswith(not_cheap("SMC", ""))
    assert "width" in note
    same = infer(grid(24), SMC(), seed=2, tasks="marginals")
    assert posterior.marginals().drop("verdict").equals(same.marginals().drop("verdict"))


def test_log_z_beside_draws_is_that_of_another_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "PARTICLES", ())

    posterior = infer(grid(24))
    alone = infer(grid(24), tasks="marginals")

    expected = infer(grid(24), EP(), tasks="logz").log_partition
    assert posterior.log_partition.value == expected.value
    assert posterior.log_partition.error == np.inf
    assert any(note.startswith("log Z is that of EP, and no") for note in posterior.solution.notes)
    assert alone.log_partition is None


def test_a_callback_a_start_or_a_lifted_graph_ask_for_steps() -> None:
    graph = friends_and_smokers()
    earlier = infer(graph, BVI(3))
    for posterior, method, reason in [
        (
            infer(toy_hybrid_mln(), callback=lambda step: None),
            "SMC",
            "a callback is given, and exact inference has no steps.",
        ),
        (infer(graph, start=earlier), "BVI(3)", "an earlier posterior is given to start from."),
        (infer(lift(toy_hybrid_mln()).graph), "BVI(3)", "the graph is lifted."),
    ]:
        assert posterior.solution.method == method
        assert posterior.solution.notes[0] == not_cheap(method, reason)


def test_many_factors_are_not_tried_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "CHEAP_FACTORS", 5)

    posterior = infer(friends_and_smokers(), rewrite=False)

    reason = "the graph has 21 factors, more than 5."
    assert posterior.solution.notes[0] == not_cheap("SMC", reason)


@pytest.mark.parametrize(
    ("limits", "methods"),
    [
        ({}, ["EP", "SMC", "Gibbs", "BVI(3)", "mean field"]),
        ({"CHECK_SECONDS": 0, "PER_VARIABLE": 0}, ["EP", "BVI(3)", "mean field"]),
        (
            {"CHECK_SECONDS": 0, "PER_VARIABLE": 0, "JOINT_FACTORS": 2},
            ["BVI(3)", "mean field"],
        ),
    ],
)
def test_the_size_of_the_graph_decides(
    limits: dict[str, int], methods: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in limits.items():
        home = {"JOINT_FACTORS": choice, "PER_VARIABLE": cost}.get(name, attempts)
        monkeypatch.setattr(home, name, limit)
    graph, tried = toy_hybrid_mln(), list[str]()

    def refuse(method: Method, *_: object) -> Posterior:
        tried.append(method.name)
        raise UnsupportedError(f"not for {method.name}")

    monkeypatch.setattr(attempts, "solve", refuse)

    with pytest.raises(UnsupportedError, match="not for mean field"):
        infer(graph, exact=False)
    assert tried == methods


def test_discrete_graphs_of_any_size_are_for_ep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(cost, "PER_VARIABLE", 0.0)
    monkeypatch.setattr(choice, "JOINT_FACTORS", 2)

    posterior = infer(grid(4), exact=False)

    assert posterior.solution.method == "EP"
    assert posterior.trust.verdict == "unchecked"
    assert "would take too long" in posterior.trust.why


def test_draws_are_not_needed_where_ep_is_exact() -> None:
    rules = "d = {0, ..., 19}\n R(d)\n S(d)\n 2 R(x) v S(y)"  # two modes, far apart

    posterior = infer(ground(parse(rules)), exact=False, tasks="marginals")

    expected = infer(ground(parse(rules)), Exact()).marginal("R(3)").prob("true")
    assert posterior.solution.method == "EP"
    assert posterior.marginal("R(3)").prob("true") == pytest.approx(expected, abs=1e-6)
    assert posterior.log_partition is None


def test_ep_answers_unchecked_where_time_is_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "PARTICLES", ())
    monkeypatch.setattr(check, "affordable_chains", lambda *_: Gibbs(draws=10**7, warm_up=10**7))

    posterior = infer(toy_hybrid_mln(), exact=False, seconds=2.0)

    assert posterior.solution.method == "EP"
    assert posterior.trust.verdict == "unchecked"
    assert (
        "Time was too short for Gibbs, which was to check the answer." in posterior.solution.notes
    )


def test_more_particles_and_chains_follow_where_there_is_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "PARTICLES", (2, 4))
    monkeypatch.setattr(check, "UNSURE_SUM", 0.0)

    posterior = infer(grid(6), exact=False)

    told = [note for note in posterior.solution.notes if "came next" in note]
    assert told[0].endswith(", and 4 particles in each group came next.")
    assert told[1:] == ["Gibbs came next, and was in doubt, too."]
    assert posterior.solution.method == "SMC"
    assert posterior.trust.verdict == "doubtful"


def test_without_a_check_ep_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = infer(grid(6), exact=False, check=False)

    assert posterior.solution.method == "EP"
    assert posterior.trust.verdict == "unchecked"
    assert "hl.check_answer(posterior, graph)" in posterior.trust.why


def test_where_ep_does_not_converge_the_next_method_answers_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(cost, "PER_VARIABLE", 0.0)
    monkeypatch.setattr(choice, "JOINT", EP(max_steps=1))

    posterior = infer(toy_hybrid_mln(), exact=False)

    assert posterior.solution.method == "BVI(3)"
    assert "SMC was not tried" in posterior.solution.notes[1]
    assert "Gibbs was not tried" in posterior.solution.notes[2]
    assert posterior.solution.notes[3] == "EP did not converge, and other answers may be off, too."
    assert posterior.trust.verdict == "doubtful"


def test_factors_that_count_several_times_are_still_exact() -> None:
    assert infer(counted_factors()).solution.method == "exact"


def seven_coefficients() -> FactorGraph:
    """A regression whose rows may be outliers; a factor of eight variables is too much for BVI."""
    rng = np.random.default_rng(0)
    x, true = rng.normal(size=(40, 7)), rng.normal(0, 2, 7)
    y = x @ true + rng.normal(size=40) + rng.normal(0, 8, 40) * (rng.random(40) < 0.15)
    columns = [f"x{k}" for k in range(7)]
    rules = f"""
        coefficient = {{0, ..., 6}}
        b(coefficient): real
        y(row): real
        Outlier(row)
        {" ".join(f"{name}(row): real{chr(10)}" for name in columns)}
        -2  Outlier(i)
        normal(b(k) | 0, 10)
        normal(y(i) | {" + ".join(f"b({k})*x{k}(i)" for k in range(7))}, 1 + 63*Outlier(i))
    """
    tables = {"y": pa.table({"row": np.arange(40), "y": y})}
    for name, column in zip(columns, x.T, strict=True):
        tables[name] = pa.table({"row": np.arange(40), name: column})
    return ground(parse(rules), tables)


def test_where_one_method_has_no_answer_the_next_is_tried() -> None:
    graph = seven_coefficients()

    posterior = infer(graph)

    expected = infer(graph, Gibbs(), tasks="marginals", seed=1)
    assert posterior.solution.result == "converged"
    for k in range(7):
        found, truth = posterior.marginal(f"b({k})"), expected.marginal(f"b({k})")
        assert found.mean == pytest.approx(truth.mean, abs=0.1 * truth.std)
        assert found.std == pytest.approx(truth.std, rel=0.1)
    assert posterior.log_partition is not None


def test_exact_inference_can_be_ruled_out() -> None:
    graph = friends_and_smokers()

    posterior = infer(graph, exact=False)

    assert posterior.solution.method != "exact"
    assert posterior.solution.notes[0].endswith("was chosen, because exact inference is ruled out.")
    with pytest.raises(UnsupportedError, match="exact=False rules out exact inference"):
        infer(graph, Exact(), exact=False)


def test_exact_inference_that_takes_longer_than_predicted_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts.Clock, "elapsed", 7.0)

    posterior = infer(friends_and_smokers(), seconds=10)

    assert posterior.solution.method != "exact"
    assert "it had not ended after 7 s." in posterior.solution.notes[0]
