"""Models that are spread over several files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hylift.errors import FormatError, ModelError
from hylift.language.statements import Rule
from hylift.language.syntax import Atom, Parameter, Variable
from hylift.language.text.parser import parse, read_model


def write(folder: Path, **texts: str) -> Path:
    """Writes files, and returns the first of them."""
    for name, text in texts.items():
        (folder / f"{name}.mln").write_text(text, encoding="utf-8")
    return folder / f"{next(iter(texts))}.mln"


def test_included_statements_stand_where_the_include_stands(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write(tmp_path / "parts", middle='topic\n#include "last.mln"\nconst W = 1', last="area")
    top = write(tmp_path, top='paper\n#include "parts/middle.mln"\nvenue\nW (A(x))')

    model = read_model(top)

    assert [declared.name for declared in model.types] == ["paper", "topic", "area", "venue"]
    assert model.rules == (Rule(Atom("A", (Variable("x"),)), Parameter("W")),)
    place = model.types[2].place
    assert place is not None
    assert place.source.name == str(tmp_path / "parts" / "last.mln")
    assert parse(top.read_text(encoding="utf-8"), folder=tmp_path) == model


def test_a_file_that_two_others_include_is_taken_in_once(tmp_path: Path) -> None:
    parts = '#include "b.mln"\n#include "c.mln"'
    top = write(tmp_path, a=parts, b='#include "d.mln"\nb', c='#include "d.mln"\nc', d="d")

    model = read_model(top)

    assert [declared.name for declared in model.types] == ["d", "b", "c"]


@pytest.mark.parametrize(
    ("texts", "place", "message"),
    [
        ({"a": '#include "b.mln"', "b": '\n#include "a.mln"'}, "b.mln:2:10", "includes itself"),
        ({"a": '#include "a.mln"'}, "a.mln:1:10", "'a.mln' includes itself"),
        ({"a": '#include "b.mln"\n' * 2, "b": ""}, "a.mln:2:10", "'b.mln' is included twice"),
        ({"a": '#include "b.mln"'}, "a.mln:1:10", "'b.mln' cannot be included: no such file"),
        ({"a": '#include "."'}, "a.mln:1:10", "only files that end in '.mln' can"),
        ({"a": '#include "/etc/hosts"'}, "a.mln:1:10", "only files that end in '.mln' can"),
        ({"a": '#include "a.mln/../b"'}, "a.mln:1:10", "only files that end in '.mln' can"),
        ({"a": '#include "b.mln"', "b": "1 &"}, "b.mln:1:3", "'&' is not allowed here"),
        ({"a": '#include "\x00"'}, "a.mln:1:10", r"'\x00'"),
        ({"a": f'#include "{"x" * 5000}"'}, "a.mln:1:10", "cannot be included"),
    ],
)
def test_bad_includes_are_refused_with_their_place(
    tmp_path: Path, texts: dict[str, str], place: str, message: str
) -> None:
    top = write(tmp_path, **texts)

    with pytest.raises(ModelError) as caught:
        read_model(top)

    first = str(caught.value).splitlines()[0]
    assert first.startswith(f"{tmp_path}/{place}: ")
    assert message in first


def test_a_folder_is_not_included(tmp_path: Path) -> None:
    (tmp_path / "b.mln").mkdir()

    with pytest.raises(ModelError, match=r"a.mln:1:10: 'b.mln' is not a file"):
        read_model(write(tmp_path, a='#include "b.mln"'))


def test_other_files_are_not_quoted_behind_a_link_either(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("& secret", encoding="utf-8")
    (tmp_path / "b.mln").symlink_to(tmp_path / "key.txt")

    with pytest.raises(ModelError, match=r"only files that end in '.mln' can") as caught:
        read_model(write(tmp_path, a='#include "b.mln"'))

    assert "secret" not in str(caught.value)


def test_a_long_row_of_includes_is_refused(tmp_path: Path) -> None:
    texts = {f"m{step}": f'#include "m{step + 1}.mln"' for step in range(60)}

    with pytest.raises(ModelError, match="includes are nested more than 50 deep"):
        read_model(write(tmp_path, **texts))


def test_a_model_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        read_model(tmp_path / "missing.mln")
