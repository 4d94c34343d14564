"""Alchemy's .db files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hylift.errors import FormatError
from hylift.formats.alchemy_db import read_facts


def facts(folder: Path, text: str) -> list[tuple[object, ...]]:
    """The rows of a file: predicate, arguments, value, form, line."""
    path = folder / "facts.db"
    path.write_text(text, encoding="utf-8")
    columns = ("predicate", "arguments", "value", "form", "line")
    return [tuple(row[name] for name in columns) for row in read_facts(path).to_pylist()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("P(A,B)", ("P", ["A", "B"], 1.0, "true", 1)),
        ("  P ( A , B )  ", ("P", ["A", "B"], 1.0, "true", 1)),
        ("!P(A)", ("P", ["A"], 0.0, "false", 1)),
        ("! P(A)", ("P", ["A"], 0.0, "false", 1)),
        ("?P(A)", ("P", ["A"], None, "unknown", 1)),
        ("Len(A) 0.098", ("Len", ["A"], 0.098, "number", 1)),
        ("Len(A) -1e-3", ("Len", ["A"], -0.001, "number", 1)),
        ("Len(A) +.5", ("Len", ["A"], 0.5, "number", 1)),
        ("0.6 P(A)", ("P", ["A"], 0.6, "probability", 1)),
        ("P", ("P", [], 1.0, "true", 1)),
        ("P()", ("P", [], 1.0, "true", 1)),
        ("!P", ("P", [], 0.0, "false", 1)),
        ("recession 0.3", ("recession", [], 0.3, "number", 1)),
        ("0.3 recession", ("recession", [], 0.3, "probability", 1)),
        ("Lives(\"New York\", 'x')", ("Lives", ["New York", "'x'"], 1.0, "true", 1)),
        ('Says("a, \\"b\\" // c") 2', ("Says", ['a, "b" // c'], 2.0, "number", 1)),
        ("Größe(Ä-1, 12)", ("Größe", ["Ä-1", "12"], 1.0, "true", 1)),
        ("Children's(M')", ("Children's", ["M'"], 1.0, "true", 1)),
        ("Is(a=b)", ("Is", ["a=b"], 1.0, "true", 1)),
        ("Ann = motherOf(Bob)", ("motherOf", ["Bob", "Ann"], 1.0, "true", 1)),
        ("3=plus( 1 , 2 )", ("plus", ["1", "2", "3"], 1.0, "true", 1)),
        ('"New York" = town("A")', ("town", ["A", "New York"], 1.0, "true", 1)),
        ("Ann = boss()", ("boss", ["Ann"], 1.0, "true", 1)),
    ],
)
def test_a_line_is_a_fact(tmp_path: Path, line: str, expected: tuple[object, ...]) -> None:
    assert facts(tmp_path, line) == [expected]


def test_comments_and_blank_lines_leave_line_numbers_right(tmp_path: Path) -> None:
    text = '// first\n\nP(A) // why\n/* P(B)\nP(C) */ P(D)\r\n\n!P("/* E */")\nP(F) /* x */ 3\n'

    found = facts(tmp_path, text)

    assert found == [
        ("P", ["A"], 1.0, "true", 3),
        ("P", ["D"], 1.0, "true", 5),
        ("P", ["/* E */"], 0.0, "false", 7),
        ("P", ["F"], 3.0, "number", 8),
    ]


def test_constants_of_types_are_listed_among_facts(tmp_path: Path) -> None:
    found = facts(tmp_path, 'P(A)\nperson={Ann, "B C",3}\nAnn = f(A)\nQ(B) 2\nplace = { }\n\0\0')

    assert found == [
        ("P", ["A"], 1.0, "true", 1),
        ("person", ["Ann"], 1.0, "constant", 2),
        ("person", ["B C"], 1.0, "constant", 2),
        ("person", ["3"], 1.0, "constant", 2),
        ("f", ["A", "Ann"], 1.0, "true", 3),
        ("Q", ["B"], 2.0, "number", 4),
    ]


def test_an_empty_file_has_no_facts(tmp_path: Path) -> None:
    assert facts(tmp_path, "") == []
    assert facts(tmp_path, "// nothing\n\n") == []


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("P(A", 4, "expected ',' or ')': 'P(A'"),
        ("P(A,)", 5, "expected a constant: 'P(A,)'"),
        ("P(A B)", 5, "expected ',' or ')': 'P(A B)'"),
        ("P(,A)", 3, "expected a constant: 'P(,A)'"),
        ("P((A))", 3, "expected a constant: 'P((A))'"),
        ("!P(A) 0.3", 7, "expected the end of the line: '!P(A) 0.3'"),
        ("0.6 P(A) 0.3", 10, "expected the end of the line: '0.6 P(A) 0.3'"),
        ("(A)", 1, "expected the name of a predicate: '(A)'"),
        ("0.3", 1, "expected the name of a predicate: '0.3'"),
        ("!!P(A)", 2, "expected the name of a predicate: '!!P(A)'"),
        ("P(A))", 5, "expected a number: 'P(A))'"),
        ("P(A) x", 6, "expected a number: 'P(A) x'"),
        ("Ann = motherOf(Bob", 19, "expected ',' or ')': 'Ann = motherOf(Bob'"),
        ("Ann = motherOf", 15, "expected '(': 'Ann = motherOf'"),
        ("Ann = 3", 7, "expected a function or a list {…}: 'Ann = 3'"),
        ("Ann = f(B) 0.3", 12, "expected the end of the line: 'Ann = f(B) 0.3'"),
        ("person = {A B}", 13, "expected ',' or '}': 'person = {A B}'"),
        ("person = {A", 12, "expected ',' or '}': 'person = {A'"),
        ("---", 1, "several databases in one file: write each to a file of its own: '---'"),
        ("P(A\0B)", 4, "a zero byte: the file is damaged, or is not a text file"),
        ("P(A) 1.2.3", 6, "expected a number: 'P(A) 1.2.3'"),
        ('P("A)', 3, "expected a constant: 'P(\"A)'"),
        ('P("A" B)', 7, "expected ',' or ')': 'P(\"A\" B)'"),
        ('!P("A") 3', 9, "expected the end of the line: '!P(\"A\") 3'"),
        ('P "A"', 3, "expected a number: 'P \"A\"'"),
        ("recession0.3", 11, "expected a number: 'recession0.3'"),
    ],
)
def test_a_bad_line_is_quoted_with_its_place(
    tmp_path: Path, line: str, column: int, message: str
) -> None:
    with pytest.raises(FormatError) as caught:
        facts(tmp_path, f"P(A) // fine\n\n{line}\nP(B)\n")

    assert str(caught.value) == f"{tmp_path}/facts.db:3:{column}: {message}"


def test_a_comment_without_end_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"facts\.db:2:6: the comment /\* has no end \*/"):
        facts(tmp_path, "P(A)\nP(B) /* P(C)\n")


QUOTED_LINES = [
    ('!P("a b",C)', ("P", ["a b", "C"], 0.0, "false")),
    ('? P( C , "a b" , "")', ("P", ["C", "a b", ""], None, "unknown")),
    ('0.5 Größe("ä")', ("Größe", ["ä"], 0.5, "probability")),
    ('Len("\\\\", "\\"") +2', ("Len", ["\\", '"'], 2.0, "number")),
    ("P(" + ", ".join(['"a b"'] * 12) + ")", ("P", ["a b"] * 12, 1.0, "true")),
    ("P(A)", ("P", ["A"], 1.0, "true")),
]


def test_lines_with_quotes_keep_their_places_among_others(tmp_path: Path) -> None:
    text = "\n\n".join(line for line, _ in QUOTED_LINES)

    found = facts(tmp_path, text)

    assert found == [(*fact, 2 * at + 1) for at, (_, fact) in enumerate(QUOTED_LINES)]


@given(words=st.lists(st.text("ab \"\\,()/*'é1", min_size=1), min_size=1, max_size=3))
def test_quoted_constants_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, words: list[str]
) -> None:
    quoted = [word.replace("\\", "\\\\").replace('"', '\\"') for word in words]
    line = "P(" + ", ".join(f'"{word}"' for word in quoted) + ")"

    found = facts(tmp_path_factory.mktemp("db"), f"Q(A)\n{line}\n")

    assert found[1] == ("P", words, 1.0, "true", 2)


def test_the_published_map_is_read(data_dir: Path) -> None:
    table = read_facts(data_dir / "robot" / "robot-map.db")

    counts = {c["values"]: c["counts"] for c in table["predicate"].value_counts().to_pylist()}

    assert counts == {"PartOf": 19, "Aligned": 652, "Length": 28, "Depth": 17, "SegType": 9}
