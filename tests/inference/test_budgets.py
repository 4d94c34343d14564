"""Limits of time: what would not fit is left out before it begins, and what goes on is reported."""

import signal
import time

import numpy as np
import pytest

import hylift as hl
from hylift.errors import IntractableError
from hylift.inference.control import Control
from hylift.inference.exact import elimination
from hylift.inference.exact.meter import Meter
from hylift.inference.expectation import method as expectation
from hylift.inference.local.terms import LocalTerms
from hylift.inference.method import Request, interruptible
from hylift.inference.search.functions import FunctionMoves
from hylift.inference.smc import tempered
from hylift.inference.smc.run import Run, Size
from hylift.inference.variational import products
from hylift.inference.variational.problem import FitProblem
from hylift.numerics import sparse
from hylift.potentials import alike
from hylift.potentials.alike import RowClasses
from hylift.progress import Forward, Progress, silent
from hylift.rewrite.kinds import Kinds
from tests.hybrid_models import random_hybrid


class Clock:
    """Seconds that pass with each look."""

    def __init__(self, each: float) -> None:
        self.each, self.now = each, 0.0

    def __call__(self) -> float:
        self.now += self.each
        return self.now


def control(seconds: float | None, progress: Progress = silent) -> Control:
    return Control(Request(frozenset({"marginals"}), 0, progress, seconds=seconds))


@pytest.fixture
def dense(monkeypatch: pytest.MonkeyPatch) -> hl.FactorGraph:
    """Reals that count as too closely coupled."""
    monkeypatch.setattr(elimination, "FEW_TO_FACTORISE", 3)
    monkeypatch.setattr(elimination, "MOST_PRODUCTS", 20)
    return random_hybrid(0, 1.0)


def test_work_that_does_not_fit_is_refused_before_it_begins() -> None:
    with pytest.raises(IntractableError, match="EP should take about 90 s here, and there is a"):
        control(3.0).check_fits(90.0, "EP")


def test_work_that_fits_is_not_refused() -> None:
    control(3.0).check_fits(2.0, "EP")
    control(0.01).check_fits(0.2, "EP")  # which is not worth a refusal
    control(None).check_fits(1e6, "EP")


@pytest.mark.parametrize("method", ["exact", "ep", "gibbs", "smc"])
def test_a_joint_gaussian_that_takes_too_long_is_refused(
    dense: hl.FactorGraph, method: str
) -> None:
    with pytest.raises(IntractableError, match="coupled too densely"):
        hl.infer(dense, method)


def test_the_default_goes_on_to_methods_without_a_joint_gaussian(dense: hl.FactorGraph) -> None:
    found = hl.infer(dense)

    assert found.solution.method.startswith("BVI")
    assert any("coupled too densely" in note for note in found.solution.notes)


def test_the_order_of_reals_is_known_without_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    def factorised(*_: object, **__: object) -> None:
        raise AssertionError("factorised")

    monkeypatch.setattr(sparse, "splu", factorised)
    edges = np.array([[0, 1], [1, 2], [0, 3]], dtype=np.int32)

    found = elimination.eliminate_reals(4, edges)

    assert np.diff(found.ptr).max() == 1


def test_a_search_for_an_order_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", Clock(0.4))
    meter, size = Meter(silent, 1.0, began=0.0), 200
    edges = np.random.default_rng(0).integers(size, size=(500, 2), dtype=np.int32)
    edges = edges[edges[:, 0] != edges[:, 1]]
    monkeypatch.setattr(elimination, "CHUNK", 10)

    with pytest.raises(IntractableError, match="found no order of elimination in 1 s"):
        elimination.eliminate_tables(np.full(size, np.log(2.0)), edges, look=meter.look)


def test_the_bound_beside_ep_is_left_out_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def bound(*_: object) -> float:
        raise AssertionError("computed")

    monkeypatch.setattr(expectation, "lower_bound", bound)

    found = hl.infer(random_hybrid(0, 1.0), "ep", seconds=1e-9, check=False)

    assert found.solution.result == "out_of_time"
    assert found.log_partition is not None
    assert found.log_partition.at_least is None


def test_progress_never_goes_back() -> None:
    seen: list[float] = []
    progress = Forward(lambda share, _: seen.append(share))

    for share in (0.0, 0.5, 0.2, 1.7, 0.9):
        progress(share, "sampling")

    assert seen == [0.0, 0.5, 0.5, 1.0, 1.0]


def test_the_progress_of_all_methods_together_never_goes_back() -> None:
    seen: list[float] = []

    hl.infer(random_hybrid(1, 1.0), exact=False, progress=lambda share, _: seen.append(share))

    assert len(seen) > 2
    assert seen == sorted(seen)


def test_long_work_between_two_steps_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", Clock(0.1))
    seen: list[str] = []
    run = control(None, lambda _, what: seen.append(what))

    for _ in range(50):
        assert run.should_continue()

    assert 3 <= len(seen) <= 15
    assert set(seen) == {"preparing"}


def test_a_mixture_that_had_no_time_has_all_its_components() -> None:
    found = hl.infer(random_hybrid(0, 1.0), hl.BVI(components=3), seconds=1e-9, check=False)

    assert found.solution.result == "out_of_time"
    assert found.mixture is not None
    assert found.mixture.num_components == 3


def test_moves_of_functions_end_with_the_time() -> None:
    def laplace(state: np.ndarray, value: np.ndarray) -> np.ndarray:
        return -np.abs(value - 0.3 - 0.4 * state)

    graph = hl.FactorGraph.build(
        {"a": hl.boolean, "x": hl.interval(0.0, 1.0)}, [(hl.Function(laplace, 1, 1), ["a", "x"])]
    )
    kinds = Kinds.of(graph)
    moves = FunctionMoves.of(kinds, LocalTerms.of(kinds))
    looks = iter([True] * 5 + [False] * 100)
    values = np.zeros(2)

    moves.ascend(values, lambda: next(looks))

    assert len(list(looks)) > 90


def test_a_sweep_over_large_tables_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "PIECE", 1)
    rng = np.random.default_rng(0)
    graph = hl.FactorGraph.build(
        dict.fromkeys("abcd", hl.boolean),
        [(hl.Table(rng.normal(size=(1, 2, 2, 2, 2))), list("abcd"))],
    )
    whole = np.zeros(graph.num_variables, dtype=bool)
    problem = FitProblem.of(graph, whole, scopes=False)
    ascent = products.Ascent.of(problem, problem.hard_penalty)
    looks = iter([True, True, False])
    entries = problem.neutral().entries.copy()
    before = entries.copy()

    change = ascent.sweep(entries, np.ones(1), lambda: next(looks))

    assert np.isinf(change).all()
    moved = (entries != before).any(axis=(0, 2)).reshape(4, 2).all(axis=1)
    assert moved.tolist() == [True, True, True, False]


def test_pieces_of_a_sweep_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_hybrid(3, 2.0)
    whole = hl.infer(graph, hl.MeanField(), check=False)

    monkeypatch.setattr(products, "PIECE", 7)
    found = hl.infer(graph, hl.MeanField(), check=False)

    assert found.log_partition == whole.log_partition
    assert found.marginals().equals(whole.marginals())


def test_slots_of_very_large_tables_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    table = hl.Table(np.ones((1, 2, 2, 2)))
    kinds = RowClasses.of(table)

    assert kinds.orbits(table).tolist() == [[0, 0, 0]]
    monkeypatch.setattr(alike, "MAX_WORK", 10)
    assert kinds.orbits(table).tolist() == [[0, 1, 2]]


def test_an_interruption_while_a_kernel_is_loaded_is_one() -> None:
    def loaded() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise SystemError("returned a result with an exception set") from error

    with pytest.raises(KeyboardInterrupt), interruptible():
        loaded()
    with pytest.raises(SystemError), interruptible():
        raise SystemError


def test_what_an_answer_needs_ends_some_time_after_an_interruption() -> None:
    graph, smc = random_hybrid(0, 1.0), control(None)
    run = Run.of(graph, Size(2, 4, 1, graph.num_variables), smc)
    smc.request.interrupt.is_heard = True
    smc.request.interrupt.press()

    smc.keep_on()
    smc.request.interrupt.since -= 10.0
    with pytest.raises(KeyboardInterrupt):
        run.finish(smc)


def test_functions_between_bounds_that_take_long_are_refused() -> None:
    abilities = hl.ground(
        hl.parse("""
            pupil = {0, ..., 199}
            question = {0, ..., 39}
            Right(pupil, question)
            ability(pupil): real
            hard(question): real
            slope(question): real[0.1, 5]
            normal(ability(p) | 0, 1)
            normal(hard(q) | 0, 1)
            lognormal(slope(q) | 0, 0.25)
            bernoulli_logit(Right(p, q) | slope(q) * (ability(p) - hard(q)))
        """),
        {"Right": [(p, q, (p + q) % 3 == 0) for p in range(200) for q in range(40)]},
    )

    with pytest.raises(hl.HyliftError, match=r"EP should take about .* a limit of 2 s"):
        hl.infer(abilities, hl.EP(), seconds=2.0)


def test_the_temperature_of_smc_never_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempered, "next_step", lambda energy, most: np.minimum(most, 1e-9))
    monkeypatch.setattr(tempered, "LEAST_GROWTH", 1.0)
    graph = hl.ground(hl.parse("x: real[0, 1]\nA\n1 A * x\n-1 x^2"))

    found = hl.infer(
        graph, hl.SMC(groups=2, particles=8), check=False, callback=lambda s: s.step > 99
    )

    assert found.solution.result != "stopped"
