"""Words for users: names that come from anywhere do nothing to a terminal."""

import io
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hylift as hl
from hylift.cli.render import Screen
from hylift.errors import HyliftError, HyliftWarning
from hylift.language.report import Problem
from hylift.language.syntax import Place, Source
from hylift.posterior.export import json_text, to_dict
from hylift.words import TextTable, Wording, printable, worded

HOSTILE = "a\x1b[31mred\u202egnp\n\x00\x9bx\u2066"
SHOWN = r"a\x1b[31mred\u202egnp\n\x00\x9bx\u2066"


def test_characters_that_a_terminal_acts_upon_are_escaped() -> None:
    assert printable(HOSTILE, one_line=True) == SHOWN
    assert printable(HOSTILE) == SHOWN.replace(r"\n", "\n")
    assert printable("Zürich, 東京, עברית, 5 µm") == "Zürich, 東京, עברית, 5 µm"


def test_cells_of_tables_stay_in_their_line() -> None:
    table = TextTable(("atom", "mean"), ((HOSTILE, "1.0"),), (1,))

    assert str(table).splitlines()[1] == f"{SHOWN}   1.0"


def test_errors_are_shown_without_effect_in_both_wordings() -> None:
    error = HyliftError(f"there is no '{HOSTILE}'", Wording("use a\x07", "use --b\x07"))

    assert str(error) == f"there is no '{SHOWN}': use a\\x07"
    assert error.cli == f"there is no '{SHOWN}': use --b\\x07"
    assert str(pickle.loads(pickle.dumps(error.text))) == error.text


def is_harmless(text: str) -> bool:
    """True without characters that a terminal acts upon, and without the line end of the name."""
    return not set(text) & set("\x1b\x00\x9b\u202e\u2066") and "gnp\n" not in text


def test_a_name_in_data_does_nothing_to_what_is_printed() -> None:
    model = hl.parse("P(x)\nr(x): real\nK(x, y!)\n1 P(x)\nnormal(r(x) | P(x), 1)\n1 K(x, z)")
    graph = hl.ground(model, {"x": [HOSTILE], "y": [HOSTILE, "b"]})

    found, drawn = hl.infer(graph), hl.infer(graph, hl.Gibbs(draws=50), check=False)

    for posterior in (found, drawn):
        summary = posterior.summary()
        assert is_harmless(f"{posterior!r}{summary}{summary._repr_html_()}{posterior.trust}")
        for name in graph.variables.names.render().to_pylist():
            assert is_harmless(f"{posterior.marginal(name)!r}{posterior.joint([name])!r}")
    assert is_harmless(json_text(to_dict(found, ("marginals",))))
    assert is_harmless(str(hl.race(graph, [hl.BP(), hl.Exact()])))
    with pytest.raises(HyliftError) as caught:
        hl.ground(model, {"r": [(HOSTILE, "oops")], "y": ["b"]})
    assert SHOWN in str(caught.value)


@pytest.mark.parametrize("what", ["file", "column", "predicate", "constant", "atom"])
def test_names_in_errors_stay_in_one_line(what: str, tmp_path: Path) -> None:
    model = hl.parse("p = {b}\nr(p): real\n-1 r(x)^2")
    ask: dict[str, Callable[[], object]] = {
        "file": lambda: hl.read_uai(tmp_path / HOSTILE.replace("\0", "")),
        "column": lambda: hl.ground(model, {"r": pa.table({"p": ["b"], HOSTILE: [1], "c": [2]})}),
        "predicate": lambda: hl.ground(model, {HOSTILE: [1.0]}),
        "constant": lambda: hl.ground(model, {"r": [(HOSTILE, 1.0)]}),
        "atom": lambda: hl.infer(hl.ground(model)).marginal(HOSTILE),
    }

    with pytest.raises(HyliftError) as caught:
        ask[what]()

    assert is_harmless(str(caught.value))
    assert len(str(caught.value).splitlines()) == 1


def test_names_in_warnings_and_places_do_nothing() -> None:
    problem = Problem("warning", f"'{HOSTILE}' is odd", Place(Source(HOSTILE, "P(x)"), 1, 1, 2))
    warned = warnings.formatwarning(HyliftWarning(f"{HOSTILE} is odd"), HyliftWarning, "f.py", 1)

    assert is_harmless(str(problem))
    assert len(str(problem).splitlines()) == 3
    assert not set(warned) & set("\x1b\x00\x9b\u202e\u2066")


def test_a_console_shows_the_words_of_users_without_effect() -> None:
    stream = io.StringIO()

    Screen(file=stream).print(f"{HOSTILE}: 3 rules", markup=False, highlight=False)

    assert not set(stream.getvalue()) & set("\x1b\x00\x9b\u202e\u2066")


def test_names_are_found_as_they_are() -> None:
    model = hl.parse("P(x)\n1 P(x)")

    found = hl.infer(hl.ground(model, {"x": [HOSTILE]}))

    (name,) = found.table("P")["x"].to_pylist()
    assert name == HOSTILE
    assert worded("a\x1b") == "a\x1b"
