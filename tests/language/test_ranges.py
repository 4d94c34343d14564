"""Long ranges of constants are stored by their ends, and are like any list of constants."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest

import hylift as hl
from hylift.errors import ModelError
from hylift.grounding.constants import words_of
from hylift.grounding.world import World
from hylift.language.ranges import Constants, Range

LISTS = [
    ("0, ..., 1999", [str(n) for n in range(2000)]),
    ("-1500, ..., 3", [str(n) for n in range(-1500, 4)]),
    ("t008, ..., t999, t1000", [f"t{n:03d}" for n in range(8, 1001)]),
    ("t0, ..., t1200, other, u0, ..., u1200", None),
    ("t0, ..., t1200, ..., t2400", [f"t{n}" for n in range(2401)]),
    ('"7 x 1", ..., "7 x 1500"', [f"7 x {n}" for n in range(1, 1501)]),
    ("a, 0, ..., 1500, b, a", ["a", *map(str, range(1501)), "b"]),
    ("7, 0, ..., 1500", ["7", *(str(n) for n in range(1501) if n != 7)]),
    ("0, ..., 1500, 20, ..., 1700", [str(n) for n in range(1701)]),
    ("t0, ..., t1200, t2000, ..., t3200", [f"t{n}" for n in (*range(1201), *range(2000, 3201))]),
    ("t10, ..., t1500, t0001, ..., t1200", None),
]


@pytest.mark.parametrize(("text", "expected"), LISTS, ids=[text for text, _ in LISTS])
def test_a_list_with_ranges_is_like_a_list_of_words(text: str, expected: list[str] | None) -> None:
    if expected is None and "other" in text:
        expected = [f"t{n}" for n in range(1201)] + ["other"] + [f"u{n}" for n in range(1201)]
    elif expected is None:
        expected = [f"t{n}" for n in range(10, 1501)] + [f"t{n:04d}" for n in range(1, 1000)]

    found = hl.parse(f"s = {{{text}}}").types[0].constants

    assert found is not None
    assert list(found) == expected
    assert len(found) == len(expected)
    assert found == tuple(expected)
    assert hash(found) == hash(tuple(expected))
    assert [found[0], found[-1], *found[5:8]] == [expected[0], expected[-1], *expected[5:8]]
    assert all(word in found for word in expected[::100])
    assert not any(word in found for word in ("t01", "+5", "05", "t99999", "", "x"))
    assert words_of(found).to_pylist() == expected
    assert hl.parse(str(hl.parse(f"s = {{{text}}}"))).types[0].constants == found


def test_repeated_constants_are_told_whether_counted_or_not() -> None:
    kept, repeated = Constants.of([("a",), Range("t", range(2000)), ("a", "b")])
    merged, twice = Constants.of([("t5",), Range("t", range(2000))])

    assert (len(kept), repeated) == (2002, ("a",))
    assert (len(merged), twice) == (2000, ("t5",))


def test_a_long_range_takes_no_memory_before_it_is_used() -> None:
    lists = "\n".join(f"{a}{b} = {{0, ..., 9999999}}" for a in "stu" for b in "abcdefghij")
    rules = "P(sa)\nK(sa, sb!)\n1 P(7)\n1 P(x) ^ K(x, 3)\nEXIST x P(x).\n{3: 1.0, *: 0} K(x, +y)\n"

    tracemalloc.start()
    model = hl.parse(lists + "\n" + rules)
    warnings = hl.check(model)
    text = str(model)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert most < 20_000_000
    assert warnings == ()
    assert "{0, ..., 9999999}" in text


def test_long_ranges_that_overlap_are_refused() -> None:
    with pytest.raises(ModelError, match=r"<text>:1:1: the type 's' has ranges that overlap: list"):
        hl.parse("s = {0, ..., 4000000, 3000000, ..., 7000000}")


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("1 P(12000000)", "type 's' has no constant '12000000'"),
        ("{3: 1.0} P(+x)", "the table has no weight for 0; 1; 2; …"),
    ],
)
def test_errors_about_long_ranges_are_found_at_once(rule: str, problem: str) -> None:
    model = hl.parse(f"s = {{0, ..., 9999999}}\nP(s)\n{rule}")

    with pytest.raises(ModelError, match=problem):
        hl.check(model)


def test_types_that_nothing_uses_are_not_listed_in_a_world() -> None:
    unused = "\n".join(f"{a} = {{0, ..., 9999999}}" for a in "stuvw")
    model = hl.parse(f"{unused}\np = {{a, b}}\nP(p)\n1 P(x)")

    before = pa.total_allocated_bytes()
    world = World.of(model)

    assert pa.total_allocated_bytes() < before + 1_000_000
    assert world.size("p") == 2
