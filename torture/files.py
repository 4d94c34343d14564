"""Damaged files of every kind: read and used, or refused in one clear line."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import hylift as hl
from alterations import altered, unpacked
from formats.mutations import EVIDENCE, MARKOV, MODELS, Mutator
from formats.test_uai_fuzz import solved_or_refused
from grounding.test_evidence_paths import (
    MODEL,
    csv_file,
    duckdb_file,
    feather_file,
    parquet_files,
    sqlite_file,
)
from hylift.archive import DIGEST, digest_of
from hylift.errors import FormatError
from hylift.inference import checkpoint
from posterior.ask_loaded import answers
from torture.case import Problem, raised
from torture.judge import difference
from torture.runs import KilledError, killer, replaced
from zoo import switching_regime

Use = Callable[[Path], Problem | None]


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file after some mutations, each from a seed of its own, and what is done with it."""

    name: str
    originals: tuple[bytes, ...]
    mutate: Callable[[bytes, int], bytes]
    seeds: tuple[int, ...]
    use: Use

    @property
    def content(self) -> bytes:
        content = self.originals[self.seeds[0] % len(self.originals)]
        for seed in self.seeds[1:]:
            content = self.mutate(content, seed)
        return content

    def problem(self) -> Problem | None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / self.name
            path.write_bytes(self.content)
            try:
                return self.use(path)
            except hl.HyliftError as error:
                return unclear(error, path)
            except Exception as error:
                return raised(error)

    def smaller(self) -> Iterator[Damaged]:
        for at in range(1, len(self.seeds)):
            yield replace(self, seeds=self.seeds[:at] + self.seeds[at + 1 :])

    def __str__(self) -> str:
        content = self.content
        if len(content) < 1500:
            return f"{self.name}: {content!r}"
        before = self.originals[self.seeds[0] % len(self.originals)]
        at = next((i for i, (a, b) in enumerate(zip(before, content, strict=False)) if a != b), 0)
        return (
            f"{self.name}: {len(content)} bytes, from byte {at} {content[at : at + 40]!r}, not "
            f"{before[at : at + 40]!r}"
        )


def unclear(error: hl.HyliftError, path: Path) -> Problem | None:
    """A problem if the message is no printable line, or about a file without its name."""
    text = str(error)
    if text and text.isprintable() and len(text) < 2000:
        return None
    return Problem("traceback", f"unclear message {text[:500]!r}", f"unclear {type(error)}")


def by_bytes(content: bytes, seed: int) -> bytes:
    """One mutation of the bytes."""
    mutator = Mutator(seed)
    return mutator.rng.choice(mutator.ways)(bytearray(content))


def damaged(
    seed: int, name: str, originals: tuple[bytes, ...], use: Use,
    mutate: Callable[[bytes, int], bytes] = by_bytes,
) -> Damaged:  # fmt: skip
    pick = random.Random(seed)
    count = 1 + pick.choice((1, 1, 1, 2, 3))
    return Damaged(name, originals, mutate, tuple(pick.randrange(2**32) for _ in range(count)), use)


def solve_uai(path: Path) -> None:
    solved_or_refused(path.read_bytes(), path)


def uai(seed: int) -> Damaged:
    return damaged(seed, "x.uai", MODELS, solve_uai)


def solve_evid(path: Path) -> None:
    model = path.with_name("model.uai")
    model.write_bytes(MARKOV)
    graph = hl.read_uai(model)
    hl.infer(graph.observe(hl.read_evidence(path, graph.variables.num_states)))


def evid(seed: int) -> Damaged:
    return damaged(seed, "x.evid", EVIDENCE, solve_evid)


@cache
def tables() -> dict[str, tuple[bytes, ...]]:
    """Sound files of the same evidence."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        parquet = parquet_files(folder)
        return {
            "csv": (csv_file(folder).read_bytes(),),
            "Length.parquet": (parquet["Length"].read_bytes(),),
            "feather": (feather_file(folder).read_bytes(),),
            "sqlite": (sqlite_file(folder).read_bytes(),),
            "duckdb": (duckdb_file(folder).read_bytes(),),
        }


def ground_all(path: Path) -> None:
    hl.ground(MODEL, path, unmatched="ignore")
    left = {other.name for other in path.parent.iterdir()} - {path.name}
    assert not left, f"left beside the file: {left}"


def ground_lengths(path: Path) -> None:
    hl.ground(MODEL, {"Length": path}, unmatched="ignore")


def csv(seed: int) -> Damaged:
    return damaged(seed, "x.csv", tables()["csv"], ground_all)


def parquet(seed: int) -> Damaged:
    return damaged(seed, "Length.parquet", tables()["Length.parquet"], ground_lengths)


def arrow(seed: int) -> Damaged:
    return damaged(seed, "x.feather", tables()["feather"], ground_all)


def sqlite(seed: int) -> Damaged:
    return damaged(seed, "x.sqlite", tables()["sqlite"], ground_all)


def duckdb(seed: int) -> Damaged:
    return damaged(seed, "x.duckdb", tables()["duckdb"], ground_all)


def by_array(content: bytes, seed: int) -> bytes:
    """An archive altered in one way, most often with a digest that is right."""
    rng = np.random.default_rng(seed)
    try:
        ways = [data for _, data in altered(content, content, rng)]
    except Exception:  # it is damaged already
        return by_bytes(content, seed)
    return ways[int(rng.integers(len(ways)))]


def is_forged(content: bytes, original: bytes) -> bool:
    """True if an archive has the right digest of other content than the original."""
    try:
        with np.load(io.BytesIO(content)) as stored:
            digest = stored[DIGEST]
        is_right = np.array_equal(digest, digest_of(unpacked(content)))
    except Exception:
        return False
    return bool(is_right) and digest.tobytes() != digest_of(unpacked(original)).tobytes()


@cache
def saved_posteriors() -> tuple[bytes, ...]:
    methods = (hl.Exact(), hl.BVI(2), hl.Gibbs(chains=2, draws=20), hl.SMC(groups=2, particles=8))
    found = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "posterior.npz"
        for method in methods:
            tasks = ("marginals", "map")
            hl.infer(switching_regime(), method, tasks=tasks, check=False).save(path)
            found.append(path.read_bytes())
    return tuple(found)


def ask(path: Path) -> None:
    with np.errstate(all="ignore"):
        json.dumps(answers(hl.Posterior.load(path)))


def posteriors(seed: int) -> Damaged:
    return damaged(seed, "x.npz", saved_posteriors(), ask, by_array)


METHODS = (
    hl.BVI(2), hl.NPVI(2), hl.MeanField(), hl.EP(), hl.EPBP(10), hl.Gibbs(chains=2, draws=50),
    hl.SMC(groups=2, particles=8), hl.MaxWalkSAT(flips=2000), hl.MiniBuckets(max_entries=8),
)  # fmt: skip


@cache
def stopped(number: int) -> tuple[bytes, hl.Posterior]:
    """A checkpoint of a run after some steps, and its answer without a break."""
    graph, method = switching_regime(), METHODS[number]
    with TemporaryDirectory() as folder, replaced(checkpoint, PAUSE=0.0, SHARE=np.inf):
        path = Path(folder) / "run.ckpt"
        whole = hl.infer(graph, method)
        with suppress(KilledError):
            hl.infer(graph, method, checkpoint=path, callback=killer(3))
        return path.read_bytes(), whole


def checkpoints(seed: int) -> Damaged:
    number = random.Random(seed).randrange(len(METHODS))
    original, whole = stopped(number)

    def resume(path: Path) -> Problem | None:
        try:
            found = hl.infer(switching_regime(), METHODS[number], checkpoint=path)
        except FormatError as error:
            return unclear(error, path)
        text = None if is_forged(path.read_bytes(), original) else difference(whole, found)
        key = f"damaged checkpoint of {METHODS[number].name}"
        return None if text is None else Problem("wrong and unflagged", text, key)

    return damaged(seed, "run.ckpt", (original,), resume, by_array)
