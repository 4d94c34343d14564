"""Whatever a file holds, reading and solving it ends in an answer or in one clear error."""

from pathlib import Path

import numpy as np
import pytest

from formats.mutations import EVIDENCE, MARKOV, MODELS, QUERIES, Mutator
from hylift import read_evidence, read_uai
from hylift.errors import FormatError, HyliftError
from hylift.formats.uai import read_marginals, read_query
from hylift.inference import infer

EVERYTHING = ("marginals", "logz", "map")


def check_is_clear(error: HyliftError, path: Path) -> None:
    """The text must be one printable line; about a file, it begins with its name."""
    text = str(error)
    assert text
    assert text.isprintable()
    if isinstance(error, FormatError):
        assert text.startswith(f"{path}:")


def solved_or_refused(content: bytes, path: Path) -> bool:
    """Whether a model could be read and solved; anything but a clear error is raised."""
    path.write_bytes(content)
    try:
        graph = read_uai(path)
        posterior = infer(graph, tasks=EVERYTHING)
    except HyliftError as error:
        check_is_clear(error, path)
        return False
    assert posterior.log_partition is not None
    assert np.isfinite(posterior.log_partition.value)
    assert np.isfinite(posterior.map().energy)
    for probs in posterior.marginals()["probs"].to_pylist():
        assert sum(probs) == pytest.approx(1.0, abs=1e-10)
    return True


def fuzz_models(count: int, seed: int, path: Path) -> int:
    """How many of `count` broken models could still be solved."""
    mutator = Mutator(seed)
    solved = 0
    for _ in range(count):
        content = mutator.mutated(MODELS)
        try:
            solved += solved_or_refused(content, path)
        except Exception as error:
            error.add_note(f"the file was {content!r}")
            raise
    return solved


def fuzz_evidence(count: int, seed: int, path: Path) -> int:
    """How many of `count` broken evidence files could still be read and used."""
    path.write_bytes(MARKOV)
    graph = read_uai(path)
    mutator = Mutator(seed)
    used = 0
    for _ in range(count):
        content = mutator.mutated(EVIDENCE)
        path.write_bytes(content)
        try:
            evidence = read_evidence(path, graph.variables.num_states)
            infer(graph.observe(evidence), tasks=EVERYTHING)
            used += 1
        except HyliftError as error:
            check_is_clear(error, path)
        except Exception as error:
            error.add_note(f"the file was {content!r}")
            raise
    return used


def test_thousands_of_broken_models_are_solved_or_refused_in_one_line(tmp_path: Path) -> None:
    solved = fuzz_models(3500, seed=1, path=tmp_path / "broken.uai")

    assert 350 < solved < 3150  # both ways are really taken


def test_broken_evidence_is_used_or_refused_in_one_line(tmp_path: Path) -> None:
    used = fuzz_evidence(1000, seed=2, path=tmp_path / "broken.evid")

    assert 100 < used < 900


def test_broken_queries_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.query"
    mutator = Mutator(3)
    read = 0

    for _ in range(1000):
        path.write_bytes(mutator.mutated(QUERIES))
        try:
            queried = read_query(path, 3)
        except HyliftError as error:
            check_is_clear(error, path)
        else:
            read += 1
            assert ((queried >= 0) & (queried < 3)).all()

    assert 100 < read < 900


def test_broken_marginals_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.MAR"
    mutator = Mutator(4)

    for _ in range(500):
        path.write_bytes(mutator.mutated((b"MAR\n3 2 0.4 0.6 2 0.5 0.5 3 0.1 0.2 0.7\n",)))
        try:
            read_marginals(path)
        except HyliftError as error:
            check_is_clear(error, path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_hundred_thousand_broken_files_are_solved_or_refused(seed: int, tmp_path: Path) -> None:
    solved = fuzz_models(8000, seed, tmp_path / "broken.uai")
    used = fuzz_evidence(2000, seed, tmp_path / "broken.evid")

    assert solved > 0
    assert used > 0
