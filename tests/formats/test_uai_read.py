"""Good UAI files give the graph they describe; bad ones one line that says what and where."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from formats.mutations import MARKOV
from hylift import read_evidence, read_uai
from hylift.errors import FormatError
from hylift.formats.uai import MAX_ARITY, MAX_STATES, read_marginals, read_query
from hylift.inference import infer

TEXT = MARKOV.decode()
TWO_TWO_THREE = np.array([2, 2, 3], dtype=np.int32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.file"


def changed(old: str, new: str) -> str:
    """The good model with one piece changed, which must be there once."""
    assert TEXT.count(old) == 1
    return TEXT.replace(old, new)


def test_a_markov_network_has_the_density_its_tables_say(path: Path) -> None:
    path.write_text(TEXT)

    graph = read_uai(path)

    assert graph.variables.num_states.tolist() == [2, 2, 3]
    assert graph.variables.names.render().to_pylist() == ["x0", "x1", "x2"]
    assert graph.log_density(np.array([1, 0, 2])) == pytest.approx(np.log(0.6 * 0.2 * 0.4))
    assert graph.log_density(np.array([0, 1, 1])) == pytest.approx(np.log(0.4 * 0.1 * 0.2))


def test_the_last_variable_of_a_scope_runs_fastest_whatever_its_number(path: Path) -> None:
    path.write_text("MARKOV 2 2 3 1 2 1 0 6 1 2 3 4 5 6")

    graph = read_uai(path)

    found = [[graph.log_density(np.array([a, b])) for a in range(2)] for b in range(3)]
    np.testing.assert_allclose(np.exp(found), [[1, 2], [3, 4], [5, 6]])


def test_a_bayes_network_sums_to_one(path: Path) -> None:
    path.write_text("BAYES 2 2 3 2 1 0 2 0 1 2 .25 .75 6 .1 .2 .7 .5 .5 0")

    posterior = infer(read_uai(path))

    assert posterior.log_partition.value == pytest.approx(0.0, abs=1e-10)
    assert posterior.marginal("x0").probs == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("\n", "\r\n"),
        " ".join(TEXT.split()),
        "\n\n" + "\n".join(TEXT.split()) + "\n\n\t ",
        TEXT.replace("MARKOV", "Markov"),
        "\ufeff" + TEXT,
        TEXT.replace("2 2 3", "2.0 2e0 +3"),
    ],
    ids=["windows", "one line", "one word a line", "case", "byte order mark", "odd numbers"],
)
def test_layout_does_not_matter(text: str, path: Path) -> None:
    path.write_bytes(text.encode())

    graph = read_uai(path)

    assert graph.log_density(np.array([1, 0, 2])) == pytest.approx(np.log(0.6 * 0.2 * 0.4))


def test_a_factor_without_variables_is_a_constant(path: Path) -> None:
    path.write_text("MARKOV 1 2 3 0 1 0 0 1 2.5 2 1 3 1 4")

    posterior = infer(read_uai(path))

    assert posterior.log_partition.value == pytest.approx(np.log(2.5 * 4 * 4))


def test_variables_without_factors_are_uniform(path: Path) -> None:
    path.write_text("MARKOV 2 2 4 0")

    posterior = infer(read_uai(path), tasks=("marginals", "logz", "map"))

    assert posterior.log_partition.value == pytest.approx(np.log(8))
    assert posterior.marginal("x1").probs == pytest.approx([0.25] * 4)


def test_a_model_without_variables_has_one_empty_assignment(path: Path) -> None:
    path.write_text("MARKOV 0\n\n1 0 1 7")

    posterior = infer(read_uai(path), tasks=("marginals", "logz", "map"))

    assert posterior.log_partition.value == pytest.approx(np.log(7))
    assert posterior.map().energy == pytest.approx(-np.log(7))


def test_the_longest_scope_that_is_read_can_be_solved(path: Path) -> None:
    ids = " ".join(map(str, range(MAX_ARITY)))
    cards = "2 2 " + "1 " * (MAX_ARITY - 2)
    path.write_text(f"MARKOV {MAX_ARITY} {cards} 1 {MAX_ARITY} {ids} 4 1 2 3 4")

    posterior = infer(read_uai(path).observe({"x0": 1}), tasks=("marginals", "logz", "map"))

    assert posterior.log_partition.value == pytest.approx(np.log(7))
    assert posterior.map()["x1"] == "1"


BROKEN = {
    "empty": ("", "the file is empty"),
    "blank": (" \n\n ", "the file is empty"),
    "preamble": (changed("MARKOV", "MARKOFF"), ":1:1: expected MARKOV or BAYES, found 'MARKOFF'"),
    "no preamble": (TEXT[7:], ":1:1: expected MARKOV or BAYES, found '3'"),
    "comment": ("\n # a model\n" + TEXT, ":2:2: expected MARKOV or BAYES, found '#'"),
    "noise": ("x" * 1_000_000, f":1:1: expected MARKOV or BAYES, found '{'x' * 39}…'"),
    "only preamble": ("MARKOV\n", ":1:7: the file ends where the number of variables"),
    "negative count": (
        changed("MARKOV\n3", "MARKOV\n-3"),
        ":2:1: the number of variables must be a whole number from 0, not '-3'",
    ),
    "fraction": (changed("MARKOV\n3", "MARKOV\n2.5"), ":2:1: the number of variables must be"),
    "word": (changed("MARKOV\n3", "MARKOV\nthree"), ":2:1: expected a number, found 'three'"),
    "huge count": (
        changed("MARKOV\n3", "MARKOV\n1000000000000"),
        ":18:13: the file ends where a number of states should follow (999999999973 numbers",
    ),
    "huger count": (changed("MARKOV\n3", "MARKOV\n1e300"), ":2:1: the number of variables must be"),
    "no states": (
        changed("2 2 3", "2 0 3"),
        f":3:3: a number of states must be a whole number from 1 to {MAX_STATES}, not '0'",
    ),
    "too many states": (changed("2 2 3", "2 1000001 3"), "from 1 to 1000000, not '1000001'"),
    "no factors": ("MARKOV\n1\n2\n", ":3:2: the file ends where the number of factors should"),
    "huge number of factors": (
        changed("\n3\n1 0", "\n1000000000000\n1 0"),
        ":18:13: the file ends before 1,000,000,000,000 scopes could follow",
    ),
    "huge scope": (
        changed("2 0 1", "1e12 0 1"),
        ":6:1: scope 1 has the length '1e12', but the file ends after 20 numbers",
    ),
    "scope of length nan": (changed("2 0 1", "nan 0 1"), ":6:1: the length of scope 1 must be a"),
    "scope of length inf": (changed("2 0 1", "inf 0 1"), ":6:1: the length of scope 1 must be a"),
    "out of range": (
        changed("2 0 1", "2 0 3"),
        ":6:5: the scope of factor 1 names variable '3'; the model has 3 (0 to 2)",
    ),
    "negative variable": (changed("2 0 1", "2 0 -1"), ":6:5: the scope of factor 1 names variable"),
    "half a variable": (changed("2 0 1", "2 0 0.5"), ":6:5: the scope of factor 1 names variable"),
    "twice": (changed("2 0 1", "2 1 1"), ":6:1: the scope of factor 1 names a variable twice"),
    "table too small": (
        changed("4\n 0.9", "3\n 0.9"),
        ":12:1: the table of factor 1 should have the size 2 x 2 = 4, not '3'",
    ),
    "table too large": (
        changed("2\n 0.4", "3\n 0.4"),
        ":9:1: the table of factor 0 should have the size 2, not '3'",
    ),
    "entry too few": (
        changed(" 0.1\n", "\n"),
        ":17:2: the table of factor 2 should have the size 2 x 3 = 6, not '0.3'",
    ),
    "truncated within a table": (
        TEXT[: TEXT.index("0.2 0.7")],
        ":18:5: the file ends within the table of factor 2, after 4 of its 6 entries",
    ),
    "truncated between tables": (
        TEXT[: TEXT.index("4\n 0.9")],
        ":10:9: the file ends where the table of factor 1 should follow",
    ),
    "truncated within scopes": (TEXT[: TEXT.index("1 2\n")], ":7:1: scope 2 has the length '2', "),
    "truncated between scopes": (
        TEXT[: TEXT.index("2 1 2")],
        ":6:6: the file ends where scope 2 of 3 should follow",
    ),
    "negative entry": (changed("0.9", "-0.9"), ":13:2: an entry of a table must be finite and not"),
    "nan entry": (changed("0.9", "nan"), ":13:2: an entry of a table must be finite"),
    "inf entry": (changed("0.9", "inf"), ":13:2: an entry of a table must be finite"),
    "entry out of range": (changed("0.9", "1e400"), "finite and not negative, not '1e400'"),
    "no number": (changed("0.9", "0,9"), ":13:2: expected a number, found '0,9'"),
    "two numbers in one": (
        changed("0.9 0.1\n 0.2 0.8", "0.9-0.1\n 0.2 0.8 z"),
        ":13:2: expected a number, found '0.9-0.1'",
    ),
    "digits of another script": (changed("0.9", "٩"), ":13:2: expected a number, found '٩'"),
    "underscore": (changed("0.9", "1_0"), ":13:2: expected a number, found '1_0'"),
    "zero byte": (changed("0.9", "0.9\x00"), r":13:2: expected a number, found '0.9\x00'"),
    "trailing number": (
        TEXT + "7",
        ":19:1: the file should end after the tables of 3 factors, but 1 more number follows",
    ),
    "trailing numbers": (TEXT + "7 8", "but 2 more numbers follow"),
    "trailing word": (TEXT + "\nend", ":20:1: expected a number, found 'end'"),
    "constant of two": (
        "MARKOV 0 1 0 2 1 1",
        ":1:14: the table of factor 0 should have the size 1, not '2'",
    ),
    "constant of zero": (
        "MARKOV 0 1 0 1 0",
        ":1:16: a factor without variables is 0, so that nothing is possible",
    ),
    "scope too long": (
        f"MARKOV 61 {'1 ' * 61} 1\n61 {' '.join(map(str, range(61)))} 1 0.5",
        ":2:1: factor 0 has 61 variables; at most 60 are supported",
    ),
    "scope without variables to name": ("MARKOV 0 1 1 0 1 1", ":1:14: the scope of factor 0 names"),
    "absurd table": (
        f"MARKOV 60 {'999 ' * 60} 1 60 {' '.join(map(str, range(60)))} 7 1",
        "the table of factor 0 should have the size 999 x 999 x",
    ),
}


@pytest.mark.parametrize(("text", "expected"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_model_is_refused_with_its_place(text: str, expected: str, path: Path) -> None:
    path.write_bytes(text.encode())

    with pytest.raises(FormatError) as caught:
        read_uai(path)

    assert str(caught.value).startswith(f"{path}:")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_place_of_an_error_is_also_in_its_attributes(path: Path) -> None:
    path.write_text(changed("0.9", "zero"))

    with pytest.raises(FormatError) as caught:
        read_uai(path)

    assert (caught.value.path, caught.value.line, caught.value.column) == (path, 13, 2)


def test_binary_noise_is_not_a_text_file(path: Path) -> None:
    path.write_bytes(b"MARKOV\n3\n\xff" + np.random.default_rng(0).bytes(1_000_000))

    with pytest.raises(FormatError, match=r":3:1: not a text file: byte 0xff is not UTF-8"):
        read_uai(path)


def test_text_noise_after_a_good_beginning_is_refused_where_it_begins(path: Path) -> None:
    letters = np.random.default_rng(0).integers(32, 127, 1_000_000, dtype=np.uint8)
    path.write_bytes(b"MARKOV\n3\n2 2 3\nnoise " + letters.tobytes())

    with pytest.raises(FormatError, match=r":4:1: expected a number, found 'noise'"):
        read_uai(path)


@pytest.mark.parametrize(
    "text",
    [
        "MARKOV\n1000000000000\n2 2\n",
        "MARKOV\n1\n2\n1000000000000\n1 0\n",
        "MARKOV\n1\n2\n1\n1000000000000 0\n",
        "MARKOV\n1\n2\n1\n1 0\n1000000000000 1 1\n",
        "MARKOV\n60\n" + "1000000 " * 60 + "\n1\n60 " + " ".join(map(str, range(60))) + "\n1 1",
        "MARKOV\n1000\n" + " ".join(map(str, range(999_000, 1_000_000))) + "\n0\n",
        "MARKOV\n50000\n" + "1000000 " * 50_000 + "\n0\n",
    ],
    ids=["variables", "factors", "scope", "table", "joint states", "domains", "states"],
)
def test_a_small_file_that_promises_much_costs_little_memory(text: str, path: Path) -> None:
    path.write_text(text)
    tracemalloc.start()

    try:
        with pytest.raises(FormatError):
            read_uai(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 50e6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\n0 1\n", {0: 1}),
        ("2 0 1 2 2", {0: 1, 2: 2}),
        ("1\n2 0 1 2 2", {0: 1, 2: 2}),
        ("1\n1\n1 0\n", {1: 0}),
        ("1 1 1", {1: 1}),
        ("1 1 1 1", {1: 1}),
        ("1\n0\n", {}),
        ("0\n", {}),
        ("\n", {}),
        ("", {}),
    ],
)
def test_both_dialects_of_evidence_are_read(
    text: str, expected: dict[int, int], path: Path
) -> None:
    path.write_text(text)

    evidence = read_evidence(path, TWO_TWO_THREE)

    assert dict(zip(evidence.variable.tolist(), evidence.value.tolist(), strict=True)) == expected
    assert evidence.is_hard.all()


BROKEN_EVIDENCE = {
    "a state is missing": (
        "2\n0 1\n1\n",
        ":1:1: the number of observations is 2, so 4 numbers (a variable and its state, each "
        "time) should follow, not 3",
    ),
    "truncated": ("3\n0 1\n1 0\n", ":1:1: the number of observations is 3, so 6 numbers"),
    "too much": ("1 0 1 1 0", ":1:1: the number of observations is 1, so 2 numbers"),
    "truncated sample": (
        "1\n2\n0 1\n",
        ":2:1: after a sample count of 1, the number of observations is 2, so 4 numbers",
    ),
    "several samples": ("2\n1 0 1\n1 0 0", ":1:1: the number of observations is 2"),
    "huge": ("1000000000000 0 1", ":1:1: the number of observations is 1000000000000"),
    "negative count": ("-1", ":1:1: the number of observations must be a whole number from 0, not"),
    "nan": ("nan 0 1", ":1:1: the number of observations must be a whole number from 0, not 'nan'"),
    "unknown variable": ("1\n3 0", ":2:1: there is no variable 3: the model has 3 (0 to 2)"),
    "unknown state": ("2\n1 0\n0 2", ":3:3: x0 has the states 0 to 1, not 2"),
    "negative variable": ("1 -1 0", ":1:3: a variable or state must be a whole number from 0, not"),
    "negative state": ("1\n0 -1", ":2:3: a variable or state must be a whole number from 0, not"),
    "half a state": ("1\n0 0.5", ":2:3: a variable or state must be a whole number from 0, not"),
    "twice": ("3 0 1 1 1 0 1", ":1:11: x0 is observed more than once"),
    "name": ("1 x0 1", ":1:3: expected a number, found 'x0'"),
}


@pytest.mark.parametrize(("text", "expected"), BROKEN_EVIDENCE.values(), ids=BROKEN_EVIDENCE.keys())
def test_broken_evidence_is_refused_with_its_place(text: str, expected: str, path: Path) -> None:
    path.write_text(text)

    with pytest.raises(FormatError) as caught:
        read_evidence(path, TWO_TWO_THREE)

    assert str(caught.value).startswith(f"{path}{expected}")


def test_a_query_names_variables(path: Path) -> None:
    path.write_text("3\n2 0 2\n")

    assert read_query(path, 3).tolist() == [2, 0, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ":1:1: the file ends where the number of queried variables should follow"),
        ("2\n0", ":2:2: the file ends where a queried variable should follow"),
        ("1000000000000 0", "(999999999999 numbers are missing)"),
        ("1 0 1", ":1:5: the file should end after 1 queried variable, but 1 more number follows"),
        ("2\n0 3", ":2:3: there is no variable 3: the model has 3 (0 to 2)"),
        ("1 -1", ":1:3: a queried variable must be a whole number from 0, not '-1'"),
        ("one", ":1:1: expected a number, found 'one'"),
    ],
)
def test_a_broken_query_is_refused_with_its_place(text: str, expected: str, path: Path) -> None:
    path.write_text(text)

    with pytest.raises(FormatError) as caught:
        read_query(path, 3)

    assert str(caught.value).startswith(str(path))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PR\n1", ":1:1: expected MAR, found 'PR'"),
        ("MAR\n2 2 .5 .5", ":2:10: the file ends where marginal 1 of 2 should follow"),
        ("MAR\n1 2 .5", ":2:3: marginal 0 has the length '2', but the file ends after 1 number"),
        ("MAR\n1 2 .5 .5 7", ":2:11: the file should end after 1 marginal, but 1 more number"),
    ],
)
def test_a_broken_result_is_refused_with_its_place(text: str, expected: str, path: Path) -> None:
    path.write_text(text)

    with pytest.raises(FormatError) as caught:
        read_marginals(path)

    assert str(caught.value).startswith(f"{path}{expected}")
