"""Files of tables, with the columns that are meant in brackets."""

from pathlib import Path

import pyarrow as pa
import pytest

from hylift.errors import EvidenceError
from hylift.formats.table_file import TableFile

TABLE = pa.table({"tasting": [1], "vineyard": [2], "price, EUR": [9.5], "Critic": ["Ann"]})


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("wine.csv", "old.csv[a,b]", "wine[1].csv"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "path", "columns"),
    [
        ("wine.csv", "wine.csv", None),
        ("wine.csv[tasting]", "wine.csv", ("tasting",)),
        ("wine.csv[ vineyard, tasting ]", "wine.csv", ("vineyard", "tasting")),
        ('wine.csv[tasting,"price, EUR"]', "wine.csv", ("tasting", "price, EUR")),
        ('wine.csv[ " cost" , "a ""b"" " ]', "wine.csv", (" cost", 'a "b" ')),
        ('wine.csv[3" pipe]', "wine.csv", ('3" pipe',)),
        ("wine.csv[price [EUR]]", "wine.csv", ("price [EUR]",)),
        ("wine[1].csv", "wine[1].csv", None),
        ("wine[1].csv[a]", "wine[1].csv", ("a",)),
        ("old.csv[a,b]", "old.csv[a,b]", None),
        ("old.csv[a,b][c]", "old.csv[a,b]", ("c",)),
        ("new[2].csv", "new[2].csv", None),
        ("new[2].csv[a]", "new[2].csv", ("a",)),
        ("[a]", "[a]", None),
    ],
)
def test_columns_stand_in_brackets_behind_a_file(
    text: str, path: str, columns: tuple[str, ...] | None
) -> None:
    assert TableFile.parse(text) == TableFile(Path(path), columns)


@pytest.mark.parametrize(
    "text", ["wine.csv", "wine.csv[a,b]", 'wine.csv["a,b","say ""c""",b c," d"]']
)
def test_a_file_with_columns_is_written_as_it_is_read(text: str) -> None:
    assert str(TableFile.parse(text)) == text


def test_columns_are_chosen_in_their_order() -> None:
    file = TableFile(Path("wine.csv"), ("critic", "tasting", "price, EUR"))

    chosen = file.chosen(TABLE, "wine.csv")

    assert chosen.column_names == ["Critic", "tasting", "price, EUR"]
    assert TableFile(Path("wine.csv")).chosen(TABLE, "wine.csv") is TABLE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "wine.csv[]",
            "wine.csv[]: there is no column between the brackets: name some, as in "
            "wine.csv[first,second]",
        ),
        ("wine.csv[tasting,]", "wine.csv[tasting,]: column 2 between the brackets has no name"),
        ("wine.csv[,tasting]", "wine.csv[,tasting]: column 1 between the brackets has no name"),
        ("wine.csv[a,b,a]", "wine.csv[a,b,a]: the column 'a' is named twice"),
        ("wine.csv[a,b", "wine.csv[a,b: the list of columns has no ']' at its end"),
        (
            'wine.csv["a]',
            'wine.csv["a]: the list of columns cannot be read; names stand between commas, and '
            "those with a comma or quotes in double quotes",
        ),
    ],
)
def test_brackets_that_name_no_columns_are_refused(text: str, expected: str) -> None:
    with pytest.raises(EvidenceError) as refusal:
        TableFile.parse(text)

    assert str(refusal.value) == expected


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            ("tasting", "vinyard"),
            "t.csv: there is no column 'vinyard'; its columns are tasting, vineyard, "
            "\"price, EUR\", Critic. Did you mean 'vineyard'?",
        ),
        (
            ("zzz", "qqq"),
            "t.csv: there is no column 'zzz' or 'qqq'; its columns are tasting, vineyard, "
            '"price, EUR", Critic',
        ),
        (
            ("critic", "tasting", "CRITIC"),
            "t.csv: 'critic' and 'CRITIC' are one column, 'Critic': name it once",
        ),
    ],
)
def test_columns_that_are_not_there_are_quoted(columns: tuple[str, ...], expected: str) -> None:
    with pytest.raises(EvidenceError) as refusal:
        TableFile(Path("t.csv"), columns).chosen(TABLE, "t.csv")

    assert str(refusal.value) == expected


def test_capitals_tell_columns_apart_where_the_file_does() -> None:
    table = pa.table({"year": [1], "Year": [2]})

    chosen = TableFile(Path("t.csv"), ("Year", "year")).chosen(table, "t.csv")
    with pytest.raises(EvidenceError) as refusal:
        TableFile(Path("t.csv"), ("YEAR",)).chosen(table, "t.csv")

    assert chosen.column_names == ["Year", "year"]
    assert str(refusal.value) == "t.csv: 'YEAR' may be 'Year' or 'year': write it as the file does"


def test_a_name_with_a_space_at_an_end_is_chosen_in_quotes() -> None:
    table = pa.table({"tasting": [1], " cost": [2]})

    chosen = TableFile.parse('wine.csv[tasting," cost"]').chosen(table, "wine.csv")

    assert chosen.column_names == ["tasting", " cost"]


def test_a_name_that_two_columns_have_is_refused() -> None:
    table = pa.table([[1], [2]], names=["a", "a"])

    with pytest.raises(EvidenceError, match=r"^t\.csv: 2 columns are called 'a'$"):
        TableFile(Path("t.csv"), ("a",)).chosen(table, "t.csv")
