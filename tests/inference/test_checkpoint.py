"""Runs that end before their time are taken up, and end where they would have ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from hylift.errors import FormatError, UnsupportedError
from hylift.files import OutputError
from hylift.graph import FactorGraph, boolean
from hylift.inference import (
    BP,
    BVI,
    EP,
    EPBP,
    NPVI,
    SMC,
    Adam,
    Exact,
    GaBP,
    Gibbs,
    Lift,
    MaxWalkSAT,
    MeanField,
    Method,
    checkpoint,
    infer,
)
from hylift.inference.method import Callback, Step
from hylift.posterior import Posterior
from hylift.potentials import Table
from zoo import ZOO, ZooModel

EVERYTHING = ("marginals", "logz", "map")


class KilledError(Exception):
    """Stands for the end of the process."""


def kill_at(step: int) -> Callback:
    def callback(found: Step) -> None:
        if found.step == step:
            raise KilledError

    return callback


def interrupt_at(step: int) -> Callback:
    def callback(found: Step) -> None:
        if found.step == step:
            signal.raise_signal(signal.SIGINT)

    return callback


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """What a shell starts in the background is told to ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def written_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step is written, however short it is."""
    monkeypatch.setattr(checkpoint, "PAUSE", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)


def model(name: str) -> FactorGraph:
    return next(one for one in ZOO if str(one) == name).graph()


RUNS: list[tuple[Method, str, Lift]] = [
    (BVI(3), "toy_hybrid_mln", "exact"),
    (BVI(3), "switching_regime", "none"),
    (BVI(2), "relational_gaussian_model", "coarse-to-fine"),
    (BVI(2), "function_of_both_kinds", "exact"),
    (BVI(2, optimiser=Adam(), max_steps=40), "toy_hybrid_mln", "exact"),
    (NPVI(3), "toy_hybrid_mln", "exact"),
    (MeanField(), "switching_regime", "exact"),
    (BP(), "mixed_cardinality_loop", "exact"),
    (BP(schedule="residual"), "mixed_cardinality_loop", "none"),
    (GaBP(), "relational_gaussian_model", "exact"),
    (EPBP(), "toy_hybrid_mln", "exact"),
    (EP(), "toy_hybrid_mln", "exact"),
    (EP(), "function_of_bounded_reals", "none"),
    (Gibbs(chains=2, draws=300, warm_up=150), "toy_hybrid_mln", "none"),
    (Gibbs(chains=2, draws=300, warm_up=150), "switching_regime", "none"),
    (Gibbs(chains=2, draws=300, warm_up=150), "function_of_both_kinds", "none"),
    (SMC(groups=2, particles=16, sweeps=4), "toy_hybrid_mln", "none"),
    (SMC(groups=2, particles=16, sweeps=4), "function_of_both_kinds", "none"),
    (MaxWalkSAT(flips=90_000, restarts=2), "toy_hybrid_mln", "none"),
    (MaxWalkSAT(flips=90_000, restarts=2), "function_of_both_kinds", "none"),
]


def check_same(one: Posterior, other: Posterior) -> None:
    """The same to the last bit."""
    if one.all_marginals is not None:
        assert one.marginals().equals(other.marginals())
    assert one.log_partition == other.log_partition
    assert np.array_equal(one.map().values, other.map().values)
    assert one.map().energy == other.map().energy
    assert one.solution.result == other.solution.result
    assert one.solution.steps == other.solution.steps
    if one.draws is not None:
        assert other.draws is not None
        assert np.array_equal(one.draws.values, other.draws.values)
    assert one.solution.history is not None
    assert other.solution.history is not None
    assert np.array_equal(one.solution.history.objective, other.solution.history.objective)
    assert np.array_equal(one.solution.history.level, other.solution.history.level)


@pytest.mark.usefixtures("written_always")
@pytest.mark.parametrize(("method", "name", "lift"), RUNS, ids=str)
def test_a_run_that_was_killed_ends_at_the_same_answer(
    method: Method, name: str, lift: Lift, tmp_path: Path
) -> None:
    graph, path = model(name), tmp_path / "run.ckpt"
    whole = infer(graph, method, lift=lift, tasks=EVERYTHING, seed=3)
    num_steps = len(whole.solution.history or ())

    for step in sorted({1, num_steps // 3, num_steps // 2, max(num_steps - 1, 1)} - {0}):
        with pytest.raises(KilledError):
            infer(
                graph, method, lift=lift, tasks=EVERYTHING, seed=3, checkpoint=path,
                callback=kill_at(step),
            )  # fmt: skip
    taken_up = infer(graph, method, lift=lift, tasks=EVERYTHING, seed=3, checkpoint=path)

    check_same(whole, taken_up)


@pytest.mark.usefixtures("written_always")
@pytest.mark.parametrize(("method", "name", "lift"), RUNS, ids=str)
def test_ctrl_c_returns_the_best_so_far_and_the_same_call_goes_on(
    method: Method, name: str, lift: Lift, tmp_path: Path
) -> None:
    graph, path = model(name), tmp_path / "run.ckpt"
    whole = infer(graph, method, lift=lift, tasks=EVERYTHING, seed=3)
    step = max(1, len(whole.solution.history or ()) // 2)

    stopped = infer(
        graph, method, lift=lift, tasks=EVERYTHING, seed=3, checkpoint=path,
        callback=interrupt_at(step),
    )  # fmt: skip
    taken_up = infer(graph, method, lift=lift, tasks=EVERYTHING, seed=3, checkpoint=path)

    if stopped.solution.result == "interrupted":
        assert stopped.solution.notes[0].startswith("Interrupted after ")
        assert f"the same call resumes from {path}." in stopped.solution.notes[0]
        assert np.isfinite(stopped.map().energy)
    else:  # the last step needed nobody to go on
        assert stopped.solution.result == whole.solution.result
    check_same(whole, taken_up)


@pytest.mark.usefixtures("written_always")
def test_a_run_that_is_over_is_read_from_its_file(tmp_path: Path) -> None:
    graph, path = model("toy_hybrid_mln"), tmp_path / "run.ckpt"
    first = infer(graph, BVI(3), checkpoint=path)
    told: list[Step] = []

    second = infer(graph, BVI(3), checkpoint=path, callback=told.append)

    check_same(first, second)
    assert told == []


def test_without_a_checkpoint_ctrl_c_returns_the_best_so_far() -> None:
    found = infer(model("toy_hybrid_mln"), BVI(3), callback=interrupt_at(4))

    assert found.solution.result == "interrupted"
    assert found.solution.notes[0] == ("Interrupted after 4 steps: this is the best answer so far.")
    assert found.marginal("posA(a0)").std > 0


def test_a_second_ctrl_c_ends_everything() -> None:
    def press_twice(step: Step) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        infer(model("toy_hybrid_mln"), BVI(3), callback=press_twice)

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_before_the_first_step_ctrl_c_ends_everything() -> None:
    def press(share: float, what: str) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        infer(model("toy_hybrid_mln"), Exact(), progress=press)


def test_a_program_that_handles_ctrl_c_itself_keeps_doing_so() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        found = infer(model("toy_hybrid_mln"), BVI(3), callback=interrupt_at(3))
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    assert heard == [signal.SIGINT]
    assert found.solution.result == "converged"


@pytest.mark.parametrize(
    "other",
    [
        lambda graph, path: infer(graph, BVI(3), seed=1, checkpoint=path),
        lambda graph, path: infer(graph, BVI(2), checkpoint=path),
        lambda graph, path: infer(graph, BVI(3), lift="none", checkpoint=path),
        lambda graph, path: infer(graph, BVI(3), tasks="map", checkpoint=path),
        lambda graph, path: infer(graph.observe({"posA(a0)": 1.0}), BVI(3), checkpoint=path),
        lambda graph, path: infer(model("switching_regime"), BVI(3), checkpoint=path),
    ],
)
def test_a_checkpoint_of_another_run_is_refused_and_kept(
    other: Callable[[FactorGraph, Path], object], tmp_path: Path
) -> None:
    graph, path = model("toy_hybrid_mln"), tmp_path / "run.ckpt"
    infer(graph, BVI(3), checkpoint=path)
    before = path.read_bytes()

    with pytest.raises(UnsupportedError, match=r"run\.ckpt: is a checkpoint of another run.*Name"):
        other(graph, path)

    assert path.read_bytes() == before


@pytest.mark.parametrize("zoo_model", ZOO, ids=str)
def test_models_are_told_apart_whatever_their_factors(zoo_model: ZooModel) -> None:
    graph = zoo_model.graph()

    assert checkpoint.fingerprint(graph, "") == checkpoint.fingerprint(zoo_model.graph(), "")
    for other in ZOO:
        if other is not zoo_model:
            assert checkpoint.fingerprint(other.graph(), "") != checkpoint.fingerprint(graph, "")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_checkpoint_is_an_error_that_names_it(share: float, tmp_path: Path) -> None:
    graph, path = model("toy_hybrid_mln"), tmp_path / "run.ckpt"
    infer(graph, BVI(3), checkpoint=path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])

    with pytest.raises(FormatError, match=r"run\.ckpt: is not a checkpoint, or is damaged"):
        infer(graph, BVI(3), checkpoint=path)


def test_a_saved_posterior_is_no_checkpoint(tmp_path: Path) -> None:
    graph, path = model("toy_hybrid_mln"), tmp_path / "posterior.npz"
    infer(graph, BVI(3)).save(path)

    with pytest.raises(FormatError, match="is not a checkpoint"):
        infer(graph, BVI(3), checkpoint=path)


def test_a_checkpoint_that_cannot_be_written_is_told_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="there is no folder"):
        infer(model("toy_hybrid_mln"), BVI(3), checkpoint=tmp_path / "nowhere" / "run.ckpt")


@pytest.mark.usefixtures("written_always")
def test_a_disk_that_fills_up_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, path = model("toy_hybrid_mln"), tmp_path / "run.ckpt"
    whole = infer(graph, BVI(3))
    write = checkpoint.FILE.__class__.write
    written = []

    def fill_up(*arguments: object, **named: object) -> None:
        written.append(arguments)
        if len(written) > 3:
            raise OutputError(f"{path}: cannot be written: No space left on device")
        write(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(checkpoint.FILE.__class__, "write", fill_up)
    with pytest.warns(
        UserWarning, match="No space left on device; the run continues without"
    ) as told:
        found = infer(graph, BVI(3), checkpoint=path)
    monkeypatch.undo()

    assert len(told) == 1
    check_same(whole, found)
    check_same(whole, infer(graph, BVI(3), checkpoint=path))


def factor_of(weight: float) -> FactorGraph:
    """Three tied Booleans: at most points of the table the weight makes no difference."""
    table = np.zeros((2, 2, 2))
    table[1, 1, 1] = weight
    names = ("a", "b", "c")
    return FactorGraph.build(dict.fromkeys(names, boolean), [(Table.shared(table), names)])


def test_every_parameter_counts_in_the_fingerprint() -> None:
    found = {checkpoint.fingerprint(factor_of(weight), "") for weight in (0.5, 3.0, 3.0)}

    assert len(found) == 2


@pytest.mark.parametrize("seconds", [3, 12, 30])  # scouts, warming up, draws
@pytest.mark.parametrize("name", ["toy_hybrid_mln", "function_of_both_kinds"])
def test_chains_that_ran_out_of_time_end_where_they_would_have_ended(
    seconds: float, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, path = model(name), tmp_path / "run.ckpt"
    method = Gibbs(chains=2, draws=900, warm_up=900, longer=1)
    whole = infer(graph, method, tasks=EVERYTHING)
    clock = count()  # a second is one look at it

    with monkeypatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: next(clock))
        first = infer(graph, method, tasks=EVERYTHING, seconds=seconds, checkpoint=path)
    second = infer(graph, method, tasks=EVERYTHING, checkpoint=path)

    assert first.solution.result == "out_of_time"
    assert first.solution.steps < whole.solution.steps
    check_same(second, whole)


@pytest.mark.usefixtures("written_always")
@pytest.mark.parametrize("method", [BVI(3), MeanField(), BP()], ids=str)
def test_the_same_call_with_little_time_is_never_worse_the_second_time(
    method: Method, tmp_path: Path
) -> None:
    name = "mixed_cardinality_loop" if isinstance(method, BP) else "switching_regime"
    graph, path = model(name), tmp_path / "run.ckpt"
    whole = infer(graph, method, checkpoint=path)

    again = infer(graph, method, seconds=30.0, checkpoint=path)

    check_same(whole, again)


def test_a_run_within_a_callback_hears_ctrl_c_too() -> None:
    graph = model("toy_hybrid_mln")
    inner: list[Posterior] = []

    def callback(step: Step) -> None:
        if step.step == 2:
            inner.append(infer(graph, BVI(3), callback=interrupt_at(3)))

    outer = infer(graph, BVI(3), callback=callback)

    assert inner[0].solution.result == "interrupted"
    assert outer.solution.result == "interrupted"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_asked_of_an_interrupted_answer_has_time_again() -> None:
    found = infer(factor_of(1.0), BP(), callback=interrupt_at(1))

    assert found.map().kind == "exact"


SCRIPT = """
import sys
import hylift as hl
from hylift.inference import checkpoint
checkpoint.PAUSE, checkpoint.SHARE = 0.0, float("inf")
model = hl.parse('''
    spin = {a, b, c, d, e, f, g, h}
    Up(spin)
    field(spin): real
    0.3  Up(x) <=> Up(y) where x != y
    normal(field(x) | 2*Up(x), 1)
    -0.1 (field(x) - field(y))^2 where x != y
''')
graph = hl.ground(model, {"field(a)": 0.3, "field(b)": 2.5})
print("ready", flush=True)
found = hl.infer(graph, hl.Gibbs(chains=2, draws=8000, warm_up=1000), checkpoint=sys.argv[1])
found.save(sys.argv[2])
"""


def test_a_process_killed_at_random_moments_ends_at_the_same_answer(tmp_path: Path) -> None:
    def start(checkpoint_path: str, result: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(tmp_path / checkpoint_path), str(tmp_path / result)],
            stdout=subprocess.PIPE,
            text=True,
        )

    rng = np.random.default_rng(0)
    with start("whole.ckpt", "whole.npz") as process:
        assert process.wait() == 0
    for _ in range(2):
        with start("run.ckpt", "run.npz") as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(float(rng.uniform(0.1, 1.0)))
            process.kill()
    with start("run.ckpt", "run.npz") as process:
        assert process.wait() == 0

    whole, taken_up = (Posterior.load(tmp_path / name) for name in ("whole.npz", "run.npz"))
    assert whole.marginals().equals(taken_up.marginals())
    assert whole.solution.objective == taken_up.solution.objective
