"""Words for users: names that come from anywhere do nothing to a terminal."""

import pickle

import pytest

import hylift as hl
from hylift.errors import HyliftError
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

    assert str(error) == f"there is no '{printable(HOSTILE)}': use a\\x07"
    assert error.cli == f"there is no '{printable(HOSTILE)}': use --b\\x07"
    assert str(pickle.loads(pickle.dumps(error.text))) == error.text


def test_a_name_in_data_does_nothing_to_what_is_printed() -> None:
    model = hl.parse("P(x)\nr(x): real\n1 P(x)\nnormal(r(x) | P(x), 1)")

    found = hl.infer(hl.ground(model, {"x": [HOSTILE]}))

    for text in (str(found.summary()), found.summary()._repr_html_(), str(found)):
        assert not set(text) & set("\x1b\x00\x9b\u202e\u2066")
    with pytest.raises(HyliftError) as caught:
        hl.ground(model, {"r": [(HOSTILE, "oops")]})
    assert SHOWN.replace(r"\n", "\n") in str(caught.value)


def test_names_are_found_as_they_are() -> None:
    model = hl.parse("P(x)\n1 P(x)")

    found = hl.infer(hl.ground(model, {"x": [HOSTILE]}))

    (name,) = found.table("P")["x"].to_pylist()
    assert name == HOSTILE
    assert worded("a\x1b") == "a\x1b"
