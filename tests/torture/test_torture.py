"""A short run of `make torture` with fixed seeds, and how it finds what breaks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import hylift as hl
from benchmarks.families.score import Moments
from torture.campaign import Campaign, Worker, minimised
from torture.case import Address, Problem, shown
from torture.graphs import rescaled
from torture.judge import Truth, judged
from zoo import switching_regime

SHORT = {
    "answers": 3, "default": 1, "exact": 4, "scales": 3, "bounds": 4, "numbers": 2,
    "resumed": 1, "threads": 1,
    "models": 20, "facts": 5, "uai": 10, "evid": 5, "csv": 3, "parquet": 3, "arrow": 2,
    "sqlite": 2, "duckdb": 1,
    "posteriors": 3, "checkpoints": 3,
}  # fmt: skip
"""Cases of each target; those that measure times are left out."""


@pytest.mark.filterwarnings("ignore", "error::RuntimeWarning")
@pytest.mark.parametrize("target", SHORT)
def test_a_short_run_finds_nothing(target: str) -> None:
    for seed in range(SHORT[target]):
        case = Address(target, seed).case()

        assert case is not None
        assert shown(case) is None, f"{target}/{seed}"


FOUND = (
    # Energies of bounded reals at 1e12 that are nothing but rounding: SMC never ended.
    pytest.param("scales/33000008", marks=pytest.mark.slow),
    "scales/33000006@2.4.5.6.9.9.9.9.10.10.10.10.10.10.10.8",  # means that are rounded at 1e12
    "bounds/844@3.4.7.8.8.8.8.9.9.9.8",  # small differences between large numbers
    "numbers/68",  # a coefficient whose square overflows
    "csv/5000454",  # a name with a line end in an error
    "parquet/5000892",  # a column whose name is not UTF-8
    "parquet/5001024",  # a word that is not UTF-8
)
"""Cases that broke something once."""


@pytest.mark.filterwarnings("ignore", "error::RuntimeWarning")
@pytest.mark.parametrize("address", FOUND)
def test_what_broke_once_stays_whole(address: str) -> None:
    case = Address.parse(address).case()

    assert case is not None
    assert shown(case) is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore", "error::RuntimeWarning")
@pytest.mark.parametrize("first", range(0, 2000, 50))
def test_no_bound_on_random_models_is_violated(first: int) -> None:
    """Of two thousand models with offsets, scales and hard rules, by methods with any settings."""
    for seed in range(first, first + 50):
        case = Address("bounds", seed).case()

        assert case is not None
        assert shown(case) is None, f"bounds/{seed}"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker(limit=2.0)
    yield made
    made.end()


def test_a_crash_is_a_finding_of_the_smallest_case_that_crashes(worker: Worker) -> None:
    address = Address("broken_cases:crash", 7)
    problem = Problem(**worker.ask(str(address)))

    smallest, _ = minimised(worker, address, problem)

    assert problem.kind == "crash"
    assert "SIGSEGV" in problem.text
    assert smallest.case().numbers == (3, 5)
    assert Address.parse(str(smallest)) == smallest


def test_a_hang_and_an_exception_are_findings(worker: Worker) -> None:
    assert worker.ask("broken_cases:divide/3") == {}
    assert worker.ask("broken_cases:hang/4")["kind"] == "hang"
    assert worker.ask("broken_cases:divide/4")["key"].startswith("ZeroDivisionError in ")


def test_a_campaign_ends_by_itself_and_counts_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    campaign = Campaign(("broken_cases:divide",), seed=2, seconds=60.0, most=4)

    count = campaign.run(workers=1)

    printed = capsys.readouterr().out
    assert count == 2
    assert "TRACEBACK broken_cases:divide/4@0.0" in printed
    assert "2 times traceback" in printed
    assert "2 traceback, 0 hang" in printed


def test_answers_are_judged_beside_the_truth_in_any_units() -> None:
    graph = switching_regime()
    truth, found = Truth.of(graph), hl.infer(graph, hl.Exact())
    is_real = graph.variables.num_states == 0
    offset, scale = np.where(is_real, 3.0, 0.0), np.where(is_real, 0.5, 1.0)

    there = hl.infer(rescaled(graph, offset, scale), hl.Exact())

    assert truth is not None
    assert judged(found, truth) is None
    assert judged(there, truth.rescaled(graph, offset, scale)) is None
    assert judged(there, truth).kind == "wrong and unflagged"
    assert Moments.of(there).mean == pytest.approx(0.5 * Moments.of(found).mean + 3.0)
