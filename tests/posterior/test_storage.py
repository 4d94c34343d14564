"""Saved posteriors: the same answers after loading, and clear errors for any other file."""

import io
import json
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import zoo
from alterations import sealed, unpacked
from hylift.errors import FormatError, UnsupportedError
from hylift.files import OutputError, write_whole
from hylift.graph import FactorGraph, Names, Variables, boolean, real
from hylift.inference import infer
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic

MODELS = {
    "states": zoo.mixed_cardinality_loop,
    "observed states": zoo.hidden_markov_model,
    "mixtures": zoo.switching_regime,
    "numerical densities": zoo.coupled_bounded_reals,
    "certain reals": zoo.observed_mixture,
    "toy": zoo.toy_hybrid_mln,
}

ASK = """
import json, sys
from hylift.posterior import Posterior
posterior = Posterior.load(sys.argv[1])
rows = posterior.marginals(observed=True).to_pylist()
print(json.dumps([posterior.log_partition.value, rows, posterior.map().to_dict()]))
"""


def answers(posterior: Posterior) -> list[object]:
    rows = posterior.marginals(observed=True).to_pylist()
    return [posterior.log_partition.value, rows, posterior.map().to_dict()]


def assert_same(actual: object, expected: object) -> None:
    """Equal, floats to the last digits."""
    if isinstance(expected, dict):
        assert list(actual) == list(expected)
        actual, expected = list(actual.values()), list(expected.values())
    if isinstance(expected, list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, rel=1e-12, abs=1e-12)
    else:
        assert actual == expected


@pytest.mark.parametrize("model", MODELS)
def test_a_loaded_posterior_gives_the_same_answers(model: str, tmp_path: Path) -> None:
    posterior = infer(MODELS[model](), tasks=["marginals", "logz", "map"])
    path = tmp_path / "answer.hylift"

    posterior.save(path)
    loaded = Posterior.load(path)

    assert_same(answers(loaded), answers(posterior))
    assert loaded.solution == posterior.solution
    assert loaded.log_partition == posterior.log_partition
    assert loaded.observed.tolist() == posterior.observed.tolist()
    assert loaded.map().kind == posterior.map().kind
    assert loaded.map().energy == posterior.map().energy
    assert [type(batch) for batch in loaded.all_marginals.batches] == [
        type(batch) for batch in posterior.all_marginals.batches
    ]
    assert repr(loaded) == repr(posterior)


@pytest.mark.parametrize("model", MODELS)
def test_every_bit_survives(model: str, tmp_path: Path) -> None:
    posterior = infer(MODELS[model]())

    posterior.save(tmp_path / "answer")
    loaded = Posterior.load(tmp_path / "answer")

    for one, other in zip(
        loaded.all_marginals.batches, posterior.all_marginals.batches, strict=True
    ):
        for field in other._event_ndims:
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


def test_another_process_gives_the_same_answers(tmp_path: Path) -> None:
    posterior = infer(zoo.coupled_bounded_reals(), tasks=["marginals", "logz", "map"])
    path = tmp_path / "answer.hylift"
    posterior.save(path)

    run = subprocess.run(
        [sys.executable, "-c", ASK, str(path)], capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    assert_same(json.loads(run.stdout), json.loads(json.dumps(answers(posterior))))


def test_a_pure_gaussian_posterior_is_stored(tmp_path: Path) -> None:
    posterior = infer(zoo.kalman_chain())

    posterior.save(tmp_path / "kalman")
    loaded = Posterior.load(tmp_path / "kalman")

    assert_same(loaded.marginals().to_pylist(), posterior.marginals().to_pylist())


def test_names_of_every_kind_are_stored(tmp_path: Path) -> None:
    names = Names.listed(["Größe", "loss(c0, b1)", "日本", "x y", ""])
    posterior = infer(FactorGraph(Variables.uniform(boolean, 5, names), ()))

    posterior.save(tmp_path / "names")
    loaded = Posterior.load(tmp_path / "names")

    assert loaded.variables.names.render().to_pylist() == names.render().to_pylist()
    assert loaded.marginal("日本").probs.tolist() == [0.5, 0.5]


def test_the_posterior_of_an_empty_graph_is_stored(tmp_path: Path) -> None:
    posterior = infer(FactorGraph.build({}, []))

    posterior.save(tmp_path / "empty")

    assert Posterior.load(tmp_path / "empty").log_partition.value == 0.0


def test_a_seed_of_numpy_is_stored(tmp_path: Path) -> None:
    posterior = infer(zoo.hard_clause(), seed=np.int64(7))

    posterior.save(tmp_path / "seeded")

    assert Posterior.load(tmp_path / "seeded").solution.seed == 7


def test_only_what_was_asked_for_is_stored(tmp_path: Path) -> None:
    posterior = infer(zoo.hard_clause(), tasks=["logz"])

    posterior.save(tmp_path / "log_z")
    loaded = Posterior.load(tmp_path / "log_z")

    assert loaded.log_partition.value == pytest.approx(np.log(3))
    with pytest.raises(UnsupportedError, match="ask for the task 'map' before saving it"):
        loaded.map()
    with pytest.raises(UnsupportedError, match="this posterior has no marginals"):
        loaded.marginals()


def test_wide_indices_are_read_too(tmp_path: Path) -> None:
    posterior = infer(zoo.toy_hybrid_mln())
    posterior.save(tmp_path / "answer")
    arrays = unpacked((tmp_path / "answer").read_bytes())
    row = "posterior.all_marginals.row"
    arrays[row] = arrays[row].astype(np.int64)
    (tmp_path / "wide").write_bytes(sealed(arrays))

    loaded = Posterior.load(tmp_path / "wide")

    assert loaded.all_marginals.row.dtype == np.int32
    assert_same(loaded.marginals().to_pylist(), posterior.marginals().to_pylist())


# Files that are something else


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("stored") / "answer"
    infer(zoo.coupled_bounded_reals(), tasks=["marginals", "logz", "map"]).save(path)
    return path.read_bytes()


def sealed_header(content: object) -> bytes:
    return sealed({"header": header(content)})


def archive(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def header(content: object) -> np.ndarray:
    return np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)


def raw_zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as members:
        members.writestr("header", b"{}")
    return stream.getvalue()


def npy(shape: tuple[int, ...], content: bytes) -> bytes:
    """A file of one array that may say more than it holds."""
    stream = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, described)
    return stream.getvalue() + content


def huge_array() -> bytes:
    """A header of ours beside an array that is said to have 80 GB."""
    stream = io.BytesIO()
    ours = io.BytesIO()
    np.save(ours, header({"format": "hylift posterior", "version": 6}))
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("header.npy", ours.getvalue())
        members.writestr("huge.npy", npy((10**10,), bytes(1000)))
    return stream.getvalue()


def lying_directory() -> bytes:
    """The same, where the directory of the zip file says so too."""
    content = bytearray(huge_array())
    at = content.rindex(b"PK\x01\x02")  # the entry of huge.npy
    content[at + 24 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little")  # its size, unpacked
    return bytes(content)


def single_array() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.arange(4))
    return stream.getvalue()


FOREIGN = {
    "empty": b"",
    "text": b"hello, world\n",
    "zeros": bytes(1000),
    "one array": single_array(),
    "other arrays": archive(a=np.arange(3)),
    "raw zip": raw_zip(),
    "header of no JSON": archive(header=np.frombuffer(b"{oops", dtype=np.uint8)),
    "header of a list": archive(header=header([1, 2])),
    "header of a number": archive(header=header(5)),
    "header of another format": archive(header=header({"format": "other", "version": 6})),
    "header without format": archive(header=header({"version": 6})),
    "header of nothing else": sealed_header({"format": "hylift posterior", "version": 6}),
    "no digest": archive(header=header({"format": "hylift posterior", "version": 6})),
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "pickle": pickle.dumps({"a": 1}),
    "objects": archive(header=np.array([{"a": 1}], dtype=object)),
    "huge array by itself": npy((10**10,), b""),
    "huge array": huge_array(),
    "huge array in a directory that lies": lying_directory(),
    "deep header": archive(header=np.frombuffer(b"[" * 100_000, dtype=np.uint8)),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_a_format_error_that_names_it(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(FOREIGN[kind])

    tracemalloc.start()
    with pytest.raises(FormatError) as refusal:
        Posterior.load(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert str(refusal.value).startswith(f"{path}: is not a saved posterior")
    assert most < 50_000_000


def test_a_file_that_cannot_be_read_comes_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")

    with pytest.raises(FormatError) as refusal:
        Posterior.load(path)

    assert str(refusal.value) == (
        f"{path}: is not a saved posterior, or is damaged (ValueError: it is not a zip file): "
        "infer again and save it"
    )


def test_another_version_is_named(tmp_path: Path) -> None:
    path = tmp_path / "newer"
    path.write_bytes(archive(header=header({"format": "hylift posterior", "version": 99})))

    with pytest.raises(
        FormatError, match="was saved by another version: format 99, not 6: infer again and save it"
    ):
        Posterior.load(path)


def test_a_small_file_that_expands_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hylift.archive.LARGE", 1_000_000)
    path = tmp_path / "bomb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as members:
        ours = io.BytesIO()
        np.save(ours, header({"format": "hylift posterior", "version": 6}))
        members.writestr("header.npy", ours.getvalue())
        with members.open("zeros.npy", "w", force_zip64=True) as stream:
            stream.write(npy((4_000_000,), b""))
            for _ in range(32):
                stream.write(bytes(1_000_000))

    tracemalloc.start()
    with pytest.raises(FormatError, match=r"expands from .* to 32,0.*: .*with max_bytes=32"):
        Posterior.load(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert most < 3_000_000
    with pytest.raises(FormatError, match="is damaged"):
        Posterior.load(path, max_bytes=40_000_000)


def test_a_limit_is_for_what_a_file_expands_to(stored: bytes, tmp_path: Path) -> None:
    path = tmp_path / "answer"
    path.write_bytes(stored)

    with pytest.raises(FormatError, match="at most 1,000 are read"):
        Posterior.load(path, max_bytes=1000)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="nowhere: no such file"):
        Posterior.load(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="is a directory, not a file"):
        Posterior.load(tmp_path)


def test_a_truncated_file_is_a_format_error(stored: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    for length in np.linspace(0, len(stored) - 1, 150).astype(int):
        path.write_bytes(stored[:length])

        with pytest.raises(FormatError, match="is not a saved posterior, or is damaged"):
            Posterior.load(path)


@pytest.mark.parametrize("how", ["flipped bits", "noise"])
def test_a_damaged_file_is_a_format_error_or_harmless(
    how: str, stored: bytes, tmp_path: Path
) -> None:
    expected = answers(infer(zoo.coupled_bounded_reals(), tasks=["marginals", "logz", "map"]))
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged"
    for _ in range(400):
        damaged = np.frombuffer(stored, dtype=np.uint8).copy()
        if how == "flipped bits":
            damaged[rng.integers(len(damaged))] ^= np.uint8(1 << rng.integers(8))
        else:
            damaged[rng.integers(0, len(damaged), 10)] = rng.integers(0, 256, 10)
        path.write_bytes(damaged.tobytes())
        try:
            loaded = Posterior.load(path)
        except FormatError as error:
            assert str(error).startswith(str(path))  # noqa: PT017
        else:  # the bit was in a part that carries nothing, such as a time stamp
            assert_same(answers(loaded), expected)


# Writing


def test_a_write_that_fails_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    infer(zoo.hard_clause()).save(path)
    before = path.read_bytes()

    def fail(stream: io.BufferedIOBase) -> None:
        stream.write(b"half of the answer")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, fail)

    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["answer"]


def test_a_full_disk_keeps_the_old_file_and_is_an_output_error(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    infer(zoo.hard_clause()).save(path)
    before = path.read_bytes()

    def fail(stream: io.BufferedIOBase) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="cannot be written: No space left on device"):
        write_whole(path, fail)

    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["answer"]


def test_saving_replaces_an_older_file(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    infer(zoo.hard_clause()).save(path)

    infer(zoo.one_state_categorical()).save(path)

    assert Posterior.load(path).variables.names.render().to_pylist() == ["only", "b"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["answer"]


def test_saving_to_a_folder_is_an_output_error(tmp_path: Path) -> None:
    posterior = infer(zoo.hard_clause())
    (tmp_path / "folder").mkdir()

    with pytest.raises(OutputError, match="folder: cannot be written"):
        posterior.save(tmp_path / "folder")
    with pytest.raises(OutputError, match="cannot be written"):
        posterior.save(tmp_path / "missing" / "answer")

    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_an_infinite_bound_survives(tmp_path: Path) -> None:
    graph = FactorGraph.build({"x": real}, [(ConditionalQuadratic.square(-1.0), ["x"])])

    infer(graph).save(tmp_path / "real")

    assert Posterior.load(tmp_path / "real").variables.domain(0) == real
