"""Saved mixtures, histories and names of predicates; and files that only pretend to hold them."""

import dataclasses
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hylift.errors import FormatError, UnsupportedError
from hylift.graph import Atoms, Names, Variables, boolean, real
from hylift.grounding import ground
from hylift.inference import infer
from hylift.language import parse
from hylift.posterior import History, Posterior, Solution
from posterior import mixtures

SEEN = {"y": 1.5, "dry": False}
HISTORY = History(
    np.array([0.1, 0.2, 0.4]),
    np.array([3.0, 2.0, 1.5]),
    np.array([2, 2, 5]),
    np.array([0, 0, 1], dtype=np.int32),
)

ASK = """
import json, sys
from hylift.posterior import Posterior
posterior = Posterior.load(sys.argv[1])
joint = posterior.joint(["x", "wet", "share"])
print(json.dumps([
    posterior.given({"x": 0.5}).marginals(observed=True).to_pylist(),
    joint.pdf({"x": 0.2, "wet": True, "share": 1.0}),
    posterior.expect(lambda x, s: x * s, ["x", "share"]).value,
    posterior.sample(5, seed=1).to_pylist(),
    posterior.map(polish=False).to_dict(),
    posterior.solution.history.to_arrow().to_pylist(),
]))
"""


BLOCKS = "variables.Variables.names.Names.blocks"
DOMAINS = "variables.Variables.domains"


def numbered(**fields: object) -> list[object]:
    """A block of names as it is stored."""
    return [{"Numbered": {"prefix": "x", "count": 6} | fields}]


def atoms(**fields: object) -> list[object]:
    words = {"constants": [{"words": "posterior.variables.names.blocks.0.strings"}]}
    return [{"Atoms": {"predicate": "p", "labels": [], "types": []} | words | fields}]


def changed(header: dict[str, object], place: str, value: object) -> dict[str, object]:
    """A header with another value at a place inside of the stored posterior."""
    *path, last = place.split(".")
    inside: dict[str, object] = header["posterior"]["Posterior"]
    for name in path:
        inside = inside[name]
    inside[last] = value
    return header


def answered() -> Posterior:
    found = mixtures.posterior(SEEN)
    solution = Solution("bvi", 3, "out_of_time", 3, 0.4, 1.5, ("A note.",), HISTORY)
    return dataclasses.replace(found, solution=solution)


def test_another_process_answers_alike(tmp_path: Path) -> None:
    posterior = answered()
    path = tmp_path / "answer"
    posterior.save(path)

    run = subprocess.run(
        [sys.executable, "-c", ASK, str(path)], capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    joint = posterior.joint(["x", "wet", "share"])
    expected = [
        posterior.given({"x": 0.5}).marginals(observed=True).to_pylist(),
        joint.pdf({"x": 0.2, "wet": True, "share": 1.0}),
        posterior.expect(lambda x, s: x * s, ["x", "share"]).value,
        posterior.sample(5, seed=1).to_pylist(),
        posterior.map(polish=False).to_dict(),
        HISTORY.to_arrow().to_pylist(),
    ]
    assert json.loads(run.stdout) == json.loads(json.dumps(expected))


def test_every_bit_of_a_mixture_survives(tmp_path: Path) -> None:
    posterior = answered()

    posterior.save(tmp_path / "answer")
    loaded = Posterior.load(tmp_path / "answer")

    for name in ("weights", "entries", "variable_to_class", "hidden"):
        np.testing.assert_array_equal(
            getattr(loaded.mixture, name), getattr(posterior.mixture, name)
        )
    for name in ("family", "first", "lower", "upper"):
        np.testing.assert_array_equal(
            getattr(loaded.mixture.layout, name), getattr(posterior.mixture.layout, name)
        )
    assert loaded.solution == posterior.solution
    assert repr(loaded.solution.history) == "History(3 steps)"


def test_a_loaded_posterior_has_no_energies(tmp_path: Path) -> None:
    answered().save(tmp_path / "answer")
    loaded = Posterior.load(tmp_path / "answer")

    assert np.isnan(loaded.map(polish=False).energy)
    assert np.isnan(loaded.marginal_map().energy)
    with pytest.raises(UnsupportedError, match="energies need the model, which is not saved"):
        loaded.energy({})
    with pytest.raises(UnsupportedError, match="has no MAP assignment"):
        loaded.map()


def test_a_conditional_posterior_is_stored(tmp_path: Path) -> None:
    conditional = answered().given({"wet": True})

    conditional.save(tmp_path / "given")
    loaded = Posterior.load(tmp_path / "given")

    assert loaded.marginals(observed=True).equals(conditional.marginals(observed=True))


def test_a_lifted_mixture_is_stored_by_classes(tmp_path: Path) -> None:
    q, _, variables = mixtures.lifted(2000)
    observed = np.ones(len(variables), dtype=bool)
    observed[q.hidden] = False
    everyone = q.marginals(variables).beside(
        variables, q.hidden, np.flatnonzero(observed), np.zeros(2000)
    )
    posterior = Posterior(variables, observed, mixtures.SOLUTION, all_marginals=everyone, mixture=q)

    posterior.save(tmp_path / "lifted")
    loaded = Posterior.load(tmp_path / "lifted")

    assert loaded.mixture.entries.shape == q.entries.shape
    assert loaded.mixture.mode()[1] == q.mode()[1]


# Names


def test_tables_of_predicates_survive(tmp_path: Path) -> None:
    model = """
    person = {Ann, "Bob, jr", "日本"}
    Friends(person, person)
    age(person): real
    rain: boolean
    1.1   Friends(x, y) => rain
    -0.1  age(x)^2
    """
    posterior = infer(ground(parse(model), {'Friends(Ann, "Bob, jr")': True}))

    posterior.save(tmp_path / "rules")
    loaded = Posterior.load(tmp_path / "rules")

    for predicate in ("Friends", "age", "rain"):
        assert loaded.table(predicate).equals(posterior.table(predicate))
    names = posterior.variables.names.render().to_pylist()
    assert loaded.variables.names.render().to_pylist() == names
    assert loaded.marginal('age("Bob, jr")').mean == 0.0


def test_words_are_stored_once_however_many_atoms_there_are(tmp_path: Path) -> None:
    people = [f"person number {i}" for i in range(300)]
    words = Atoms("likes", (people, people)).constants[0]
    pairs = np.array([[0, 1], [2, 2]], dtype=np.int32)
    blocks = [
        (Atoms("likes", (words, words)), boolean),
        (Atoms("age", (words,)), real),
        (Atoms("met", (words, words), pairs, labels=("who", "whom")), boolean),
    ]
    variables = Variables.in_blocks(blocks)
    posterior = Posterior(variables, np.zeros(len(variables), dtype=bool), mixtures.SOLUTION)

    posterior.save(tmp_path / "atoms")
    loaded = Posterior.load(tmp_path / "atoms")

    assert (tmp_path / "atoms").stat().st_size < 20_000
    assert loaded.variables.names[90_301] == "met(person number 2,person number 2)"
    assert loaded.variables.names.predicate("met")[1].argument_columns()["who"].to_pylist() == [
        "person number 0",
        "person number 2",
    ]
    assert loaded.variables.names.id("likes(person number 1,person number 2)") == 302


def test_names_of_some_variables_are_stored(tmp_path: Path) -> None:
    names = Names.numbered(10, "v").take(np.array([3, 7]))
    posterior = Posterior(
        Variables.uniform(real, 2, names), np.zeros(2, dtype=bool), mixtures.SOLUTION
    )

    posterior.save(tmp_path / "some")

    assert Posterior.load(tmp_path / "some").variables.names.render().to_pylist() == ["v3", "v7"]


# Files that pretend


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("stored") / "answer"
    answered().save(path)
    return path.read_bytes()


def archive(arrays: dict[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def ask_everything(posterior: Posterior) -> None:
    posterior.marginals(observed=True)
    if posterior.mixture is not None and len(posterior.mixture.hidden):
        posterior.sample(3, seed=0)
        posterior.map(polish=False)
        posterior.mixture.component_modes()


def test_a_truncated_file_is_a_format_error(stored: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    for length in np.linspace(0, len(stored) - 1, 100).astype(int):
        path.write_bytes(stored[:length])

        with pytest.raises(FormatError, match="is not a saved posterior, or is damaged"):
            Posterior.load(path)


MUTATIONS = {
    "shorter": lambda array, rng: array[:-1],
    "longer": lambda array, rng: np.concatenate([array, array[-1:]]),
    "empty": lambda array, rng: array[:0],
    "another axis": lambda array, rng: array[None],
    "another type": lambda array, rng: array.astype(np.float32),
    "texts": lambda array, rng: array.astype(str),
    "negative": lambda array, rng: (-array.astype(np.int64) - 1).astype(array.dtype),
    "huge": lambda array, rng: np.full_like(array, np.array(2**62).astype(array.dtype)),
    "shuffled": lambda array, rng: rng.permutation(array),
    "not a number": lambda array, rng: (
        array * (np.nan if array.dtype == np.float64 else np.array(0, array.dtype))
    ),
    "one entry": lambda array, rng: _spoiled(array, rng),
}


def _spoiled(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    spoiled = array.copy()
    flat = spoiled.reshape(-1)
    if flat.size:
        flat[rng.integers(flat.size)] = np.array(rng.integers(0, 100)).astype(array.dtype)
    return spoiled


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("how", MUTATIONS)
def test_arrays_of_another_content_are_refused_or_harmless(
    how: str, stored: bytes, tmp_path: Path
) -> None:
    with np.load(io.BytesIO(stored)) as loaded:
        arrays = dict(loaded)
    rng = np.random.default_rng(0)
    path = tmp_path / "pretender"
    refused = 0
    for name, array in arrays.items():
        if name == "header" or (array.dtype == bool and how in ("negative", "not a number")):
            continue
        path.write_bytes(archive(arrays | {name: MUTATIONS[how](array, rng)}))
        try:
            posterior = Posterior.load(path)
        except FormatError as error:
            assert str(error).startswith(str(path))  # noqa: PT017
            refused += 1
        else:
            ask_everything(posterior)
    assert refused > 5


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (BLOCKS, numbered(count=10**15)),
        (BLOCKS, numbered(prefix=5)),
        (BLOCKS, numbered(count=-1)),
        (BLOCKS, numbered(count="six")),
        (BLOCKS, atoms(constants=[{"words": "nowhere"}])),
        (BLOCKS, atoms(constants=atoms()[0]["Atoms"]["constants"] * 9)),
        (BLOCKS, atoms(labels=["one", "two"])),
        (BLOCKS, [{"Other": {}}]),
        (BLOCKS, [{"same": "posterior.nowhere"}]),
        (BLOCKS, None),
        (DOMAINS, [{"Domain": {"states": None, "lower": 3.0, "upper": 1.0}}]),
        (DOMAINS, [{"Domain": {"states": [1, 2], "lower": 0.0, "upper": 1.0}}]),
        (DOMAINS, []),
        ("mixture", "yes"),
        ("solution", {"Solution": {"method": "bvi"}}),
        ("solution.Solution.result", "guessed"),
        ("solution.Solution.seconds", "soon"),
        ("solution.Solution.history.History.measure", "luck"),
        ("log_partition", {"LogPartition": {"value": 0.0, "kind": "rumour"}}),
        ("observed", [True]),
    ],
)
def test_a_header_of_another_content_is_refused(
    place: str, value: object, stored: bytes, tmp_path: Path
) -> None:
    with np.load(io.BytesIO(stored)) as loaded:
        arrays = dict(loaded)
    header = changed(json.loads(arrays["header"].tobytes()), place, value)
    content = json.dumps(header).encode()
    path = tmp_path / "pretender"
    path.write_bytes(archive(arrays | {"header": np.frombuffer(content, dtype=np.uint8)}))

    with pytest.raises(FormatError, match="is not a saved posterior, or is damaged"):
        Posterior.load(path)


@pytest.mark.parametrize(
    "types",
    [
        [{"type": ["int64", None]}],
        [{"type": ["double", None]}],
        [{"type": ["string", None]}] * 2,
        [{"type": ["timestamp[s]", "Mars/Olympus"]}],
        [{"type": ["date32[day]", "UTC"]}],
        [{"type": "string"}],
        ["string"],
        None,
    ],
    ids=str,
)
def test_constants_of_another_type_are_refused(types: object, tmp_path: Path) -> None:
    kind = pa.timestamp("s", "Europe/Berlin")
    days = Atoms("p", (["2024-03-01", "2024-03-02"],), types=(kind,))
    posterior = Posterior(
        Variables.in_blocks([(days, real)]), np.zeros(2, dtype=bool), mixtures.SOLUTION
    )
    path = tmp_path / "days"
    posterior.save(path)
    loaded = Posterior.load(path).variables.names.predicate("p")[1]
    with np.load(path) as stored:
        arrays = dict(stored)
    header = json.loads(arrays["header"].tobytes())
    blocks = header["posterior"]["Posterior"]["variables"]["Variables"]["names"]["Names"]["blocks"]
    blocks[0]["Atoms"]["types"] = types
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    path.write_bytes(archive(arrays))

    assert loaded.argument_columns()["arg1"].type == kind
    with pytest.raises(FormatError, match="is not a saved posterior, or is damaged"):
        Posterior.load(path)


def test_an_earlier_version_is_named(stored: bytes, tmp_path: Path) -> None:
    with np.load(io.BytesIO(stored)) as loaded:
        arrays = dict(loaded)
    header = json.loads(arrays["header"].tobytes()) | {"version": 1}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    path = tmp_path / "older"
    path.write_bytes(archive(arrays))

    with pytest.raises(FormatError, match="was saved by another version: format 1, not 6"):
        Posterior.load(path)


def test_the_columns_of_a_history_fit_each_other() -> None:
    with pytest.raises(ValueError, match="one entry per step"):
        History(np.zeros(2), np.zeros(3), np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int32))
