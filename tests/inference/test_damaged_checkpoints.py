"""Altered checkpoints are refused in one line, or change nothing of the answer."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

from alterations import altered, sealed, unpacked
from hylift.archive import digest_of
from hylift.errors import FormatError, HyliftError
from hylift.inference import BP, BVI, SMC, Gibbs, Lift, MaxWalkSAT, Method, MiniBuckets, infer
from hylift.inference import checkpoint as checkpoints
from hylift.posterior import Posterior
from inference.test_checkpoint import RUNS, KilledError, kill_at, model

Run = tuple[Method, str, Lift]

FEW: list[Run] = [
    (BVI(2), "toy_hybrid_mln", "exact"),
    (BP(), "mixed_cardinality_loop", "exact"),
    (Gibbs(chains=2, draws=100, warm_up=50), "toy_hybrid_mln", "none"),
    (MaxWalkSAT(flips=30_000, restarts=1), "toy_hybrid_mln", "none"),
]
ALL = [*RUNS, (MiniBuckets(), "mixed_cardinality_loop", "none")]


@pytest.fixture(autouse=True)
def written_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "PAUSE", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", np.inf)


def ended(run: Run, path: Path | None = None, kill: int | None = None) -> Posterior:
    method, name, lift = run
    tasks = ("logz",) if isinstance(method, MiniBuckets) else ("marginals", "logz", "map")
    return infer(
        model(name), method, lift=lift, tasks=tasks, seed=3, checkpoint=path,
        callback=None if kill is None else kill_at(kill),
    )  # fmt: skip


def stored(run: Run, path: Path) -> tuple[Posterior, bytes, bytes]:
    """The answer, and the checkpoint in the middle of the run and at its end."""
    whole = ended(run)
    found = []
    for kill in (max(1, len(whole.solution.history or ()) // 2), None):
        path.unlink(missing_ok=True)
        with contextlib.suppress(KilledError):
            ended(run, path, kill)
        found.append(path.read_bytes())
    return whole, found[0], found[1]


def is_same(one: Posterior, other: Posterior) -> bool:
    """The same answers, as far as they have converged."""
    pairs = []
    if one.log_partition and other.log_partition:
        pairs.append((one.log_partition.value, other.log_partition.value))
    if one.all_marginals is not None and other.all_marginals is not None:
        every = np.arange(len(one.variables))
        for name in ("mean", "prob"):
            pairs.append(tuple(p.all_marginals.statistic(every, name) for p in (one, other)))
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True) for a, b in pairs)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # forged numbers may overflow
@pytest.mark.parametrize(
    "runs", [FEW, pytest.param(ALL, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_an_altered_checkpoint_is_refused_or_never_converges_elsewhere(
    runs: list[Run], tmp_path: Path
) -> None:
    rng, path = np.random.default_rng(len(runs)), tmp_path / "run.ckpt"
    files = [stored(run, path) for run in runs]
    refused = total = 0
    for place, (run, (whole, middle, end)) in enumerate(zip(runs, files, strict=True)):
        other = files[(place + 1) % len(files)][2]
        for content in (middle, end) if runs is ALL else (middle,):
            for kind, data in altered(content, other, rng):
                path.write_bytes(data)
                total += 1
                try:
                    found = ended(run, path)
                except HyliftError as error:
                    assert len(str(error).splitlines()) == 1, kind  # noqa: PT017
                    refused += 1
                    continue
                # The sums of draws are like those of any other seed.
                is_drawn = isinstance(run[0], Gibbs | SMC)
                has_converged = found.solution.result == "converged"
                is_trusted = has_converged and found.trust.verdict != "doubtful"
                assert is_drawn or not is_trusted or is_same(whole, found), (run, kind)

    assert refused > total / 2


def test_a_checkpoint_that_expands_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hylift.archive.LARGE", 100_000)
    path = tmp_path / "run.ckpt"
    arrays = unpacked(stored(FEW[0], path)[1]) | {"0/more": np.zeros(1_000_000)}
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays, digest=digest_of(arrays))

    with pytest.raises(FormatError, match=r"expands from .* are read"):
        ended(FEW[0], path)


@pytest.mark.parametrize("run", FEW, ids=str)
def test_arrays_that_do_not_fit_are_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    arrays = unpacked(stored(run, path)[2])
    name = max(n for n in arrays if "/" in n and arrays[n].ndim)
    path.write_bytes(sealed({**arrays, name: np.concatenate([arrays[name]] * 2)}))

    with pytest.raises(FormatError, match=r"run\.ckpt: is not a checkpoint, or is damaged \('"):
        ended(run, path)


@pytest.mark.parametrize(
    "runs", [FEW, pytest.param(ALL, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_every_whole_number_of_a_state_has_a_range(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code takes them for positions, sizes or codes; other words are of generators."""
    from hylift.inference import loop
    from hylift.inference.held import Held

    free: set[str] = set()
    kept = loop.arrays_of

    def look(state: object) -> object:
        for name, one in state.items():  # type: ignore[attr-defined]
            array = one.array if isinstance(one, Held) else one
            is_bounded = isinstance(one, Held) and (
                one.is_order or (np.all(np.isfinite(one.low)) and not np.all(np.isneginf(one.high)))
            )
            if array.dtype.kind in "iu" and array.dtype != np.uint64 and not is_bounded:
                free.add(name)
        return kept(state)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "arrays_of", look)
    for number, run in enumerate(runs):
        ended(run, tmp_path / f"{number}.ckpt")

    assert not free
