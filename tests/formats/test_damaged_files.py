"""Models and facts broken by a slip, a bad disk or a bad program: one clear line, or a result."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hylift.errors import HyliftError
from hylift.formats.alchemy_db import read_facts
from hylift.language.checks.check import problems
from hylift.language.text.formatter import format_model
from hylift.language.text.parser import parse, read_model

MODEL = b"""\
// a model as others write them
person = {Ann, Bob, 'Cid'}
time = {1, ..., 9}
person motherOf(person)
Friends(person, person)
Feels(person, feeling!)
age(person): real
1.2e-1 Friends(x, x') ^ x != x' => (Happy(x) | !Happy(x'))
Happy(motherOf(x)).
[EXIST y Friends(x, y)] v Happy(x).
{Good: 0.5, *: 0} Feels(x, +f)
-0.1 (age(x) - 30)^2
Happy(person)
At(person, time)
2 At(x, t++) :- At(x, t)
"""

MARKED = (
    b'a(x)\nb(x, y)\nlog(0.4) a(?x) ^ b(?x, red)\na(?x) => b(?x, "blue").\n#fixweight\n1 a(?x)\n'
)

FACTS = b"""\
// facts
Friends(Ann, Bob)
!Friends(Bob, "Ann, the first")
?Feels(Ann, Good)
age(Ann) 33.5
0.6 Happy(Bob)  /* perhaps */
Ann = motherOf(Bob)
person = {Ann, Bob, "Cid"}
"""

SPLINTERS = (
    b"\0 \xff \xc3 ( ) [ ] { } , . ! ? + - * = ' \" // /* */ : ; ^ | => \n \r \t # 1e999 v EXIST "
    b"?x t++"
).split(b" ")


def read_and_check(path: Path) -> None:
    """Reads a model, which must survive being written and checked."""
    model = read_model(path)
    assert parse(format_model(model)) == model
    problems(model)


def damaged(content: bytes, pick: random.Random) -> bytes:
    """The content cut off, or with pieces lost, doubled or of other files."""
    for _ in range(pick.choice([1, 1, 2, 5])):
        here, there = sorted(pick.randrange(len(content) + 1) for _ in range(2))
        match pick.randrange(4):
            case 0:
                content = content[:there]
            case 1:
                content = content[:here] + content[there:]
            case 2:
                content = content[:there] + content[here:]
            case 3:
                content = content[:here] + pick.choice(SPLINTERS) + content[here:]
    return content


def outcome(read: Callable[[Path], object], path: Path, content: bytes) -> str:
    """The first line of the error, or an empty text; other exceptions name the content."""
    path.write_bytes(content)
    try:
        read(path)
    except HyliftError as error:
        return str(error).splitlines()[0]
    except Exception as error:
        error.add_note(f"the file was {content!r}")
        raise
    return ""


def check_is_clear(message: str, path: Path) -> None:
    """The line must begin with the place, be printable, and not be endless."""
    place = re.match(rf"{re.escape(str(path))}:([0-9]+)(:[0-9]+)?: .", message)
    assert place, message
    assert message.isprintable(), message
    assert len(message) < len(str(path)) + 700, message


@pytest.mark.parametrize(
    ("read", "name", "content"),
    [
        (read_and_check, "x.mln", MODEL),
        (read_and_check, "x.mln", MARKED),
        (read_facts, "x.db", FACTS),
    ],
)
def test_damaged_files_are_read_or_refused(
    tmp_path: Path, read: Callable[[Path], object], name: str, content: bytes
) -> None:
    pick, path = random.Random(3), tmp_path / name
    sound = content.replace(b", 'Cid'", b"")
    assert outcome(read, path, sound) == ""

    messages = [outcome(read, path, damaged(content, pick)) for _ in range(60)]

    refused = [message for message in messages if message]
    for message in refused:
        check_is_clear(message, path)
    assert len(refused) > 20


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x.mln", b"A(p)\n1 A(x\0)\n", "{path}:2:6: '\\x00' is not allowed here"),
        ("x.mln", b"A(p)\n1 A(\xff)\n", "{path}:2:5: not a text file: byte 0xff is not UTF-8"),
        ("x.mln", b"A(p)\n1 " + b"(" * 3000, "{path}:2:1003: brackets are nested more than 1000"),
        ("x.mln", b"A(p)\n1 A(x" + b"y" * 10**6, "{path}:2:4: '(' is never closed"),
        ("x.mln", b"A(p)\n1 " + b"!" * 10**4 + b"A(x)", "{path}:2:103: the expression has more"),
        ("x.mln", b"/* A(p)\n1 A(x)\n", "{path}:1:1: the comment is never closed: '*/' is missing"),
        ("x.mln", b"A(p)\n1 A(x) ^\n", "{path}:2:9: expected a formula after '^', not the end"),
        ("x.db", b"P(A)\nP(\0)\n", "{path}:2:3: a zero byte: the file is damaged, or is not a"),
        ("x.db", b"P(A)\nP(\xc3(\n", "{path}:2:3: not a text file: byte 0xc3 is not UTF-8"),
        ("x.db", b"P(A)\nP" + b"(" * 10**5, "{path}:2:3: expected a constant: 'P(((("),
        ("x.db", b"P(A)\nP(" + b"A," * 10**5, "{path}:2:200003: expected a constant: 'P(A,A,A,"),
        ("x.db", b"P(A)\nP(" + b"A" * 10**6, "{path}:2:1000003: expected ',' or ')': 'P(AAAA"),
        ("x.db", b"P(A)\n/* P(B)\n", "{path}:2:1: the comment /* has no end */"),
    ],
)
def test_damage_is_told_in_one_line(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    path = tmp_path / name

    message = outcome(read_model if name == "x.mln" else read_facts, path, content)

    assert message.startswith(expected.format(path=path))
    check_is_clear(message, path)


@pytest.mark.parametrize("padding", [b"\0", b"\n\0\0", b"\r\n\0"])
def test_zero_bytes_at_the_end_are_ignored(tmp_path: Path, padding: bytes) -> None:
    assert outcome(read_model, tmp_path / "x.mln", b"A(p)\n1 A(x)" + padding) == ""
    assert outcome(read_facts, tmp_path / "x.db", b"P(A)" + padding) == ""
