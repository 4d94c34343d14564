"""A text that is no model is refused with what is wrong, where, and what to do."""

from __future__ import annotations

import pytest

from hylift.errors import ModelError
from hylift.language.report import WIDEST, _lines, located
from hylift.language.syntax import Atom, Place, Source, Variable
from hylift.language.text.parser import parse


def error(text: str) -> str:
    with pytest.raises(ModelError) as caught:
        parse(text)
    return str(caught.value)


def test_an_error_shows_the_place() -> None:
    assert error("A(x)\n1\tA(x) & B(x)") == (
        "<text>:2:8: '&' is not allowed here; 'and' is written '^'\n"
        "    1\tA(x) & B(x)\n"
        "     \t     ^"
    )


def test_unprintable_letters_are_blanks_and_long_lines_are_cut() -> None:
    assert error("1 A(x)\x0b& B(x)").splitlines()[1:] == ["    1 A(x) & B(x)", "           ^"]

    shown = error("\t" + "1 A(x) v " * 30 + "&").splitlines()

    assert len(shown[1]) <= 4 + WIDEST
    assert shown[1][shown[2].index("^")] == "&"


def test_a_place_past_the_end_of_its_line_is_shown() -> None:
    place = Place(Source("m.mln", "\ta"), 1, 9, 10)

    assert located("oh", place) == "m.mln:1:9: oh\n    \ta\n    \t       ^"


def test_thousands_of_problems_split_the_text_once() -> None:
    text = "a = {b}\n" * 3000
    _lines.cache_clear()

    for line in range(1, 3001):
        located("oh", Place(Source("m.mln", text), line, 1, 2))

    assert _lines.cache_info().misses == 1


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("0.3", "1:1", "expected a formula after the weight"),
        ("{A: 1}", "1:7", "expected a formula after the weight, not the end of the line"),
        ("A(x) =>", "1:8", "expected a formula after '=>', not the end of the line"),
        (
            "(SUM y: A(y)) B(x)",
            "1:15",
            "a weight made of numbers and constants; sums and counts multiply the formula, as in "
            "'(SUM x: …) * A(x)'",
        ),
        (
            "1.5 + 0.1*domSize(person) A(x)",
            "1:27",
            "; for pracmln's 'domSize', name the number of constants by 'const'",
        ),
        ("A(x) B(x)", "1:6", "expected an operator before this, or a weight made of numbers"),
        ("1 A(x), B(x)", "1:7", "expected an operator, '.', 'where' or the end of the line after"),
        ("\n1 (A(x)\n2 B(x)", "2:3", "'(' is never closed"),
        ("1 (A(x)\n2 B(x))", "2:1", "not '2'; '(' of line 1 is still open"),
        ("1 A(x))", "1:7", "')' closes no bracket"),
        ("1 (A(x]", "1:7", "']' cannot close '(' of line 1"),
        ("A(x).  B(x)", "1:8", "expected the end of the line after '.', not 'B'"),
        ("1 A(x)\n  ^ B(x)", "2:3", "to continue a line, put the operator at its end"),
        ("1 A(x) = 1 = 2", "1:12", "comparisons cannot be chained: put one in brackets"),
        ("1 A(x) || B(x)", "1:8", "'or' is written 'v'"),
        (
            "1 A(x, )",
            "1:8",
            "expected a variable or a constant after ',', not ')', in the arguments",
        ),
        ("W (x(s) = 1)", "1:9", "a weight 'W' needs its 'const' above this line"),
        ("const = 3", "1:7", "expected a name after 'const', not '='"),
        ("1e999 A(x)", "1:1", "'1e999' is too large for a number"),
        ("0.3.4 A(x)", "1:1", "'0.3.4' is not a number"),
        ("2x", "1:1", "'2x' is not a number"),
        ("1 A(x)^2^2", "1:9", "expected an operator"),
        ("/* a", "1:1", "the comment is never closed"),
        ('1 A("a\n")', "1:5", "the text in quotes does not end on its line"),
        (r'1 A("\q")', "1:5", r"'\q' is not an escape sequence"),
        ("A(\x00)", "1:3", r"'\x00' is not allowed here"),
        ("\ud800", "1:1", r"'\ud800' is not allowed here"),
        ("t = {1, ..., 99999999999}", "1:9", "the maximum is 10,000,000"),
        ("t = {1, ..., 99999999999999999999}", "1:9", "its numbers are too long"),
        ("t = {t1, ..., s2}", "1:10", "no range from 't1' to 's2': they begin with 't' and 's'"),
        ("t = {t5, ..., t2}", "1:10", "'t5' comes after 't2'"),
        ("t = {t05, ..., t100}", "1:11", "'05' and '100' differ in their number of digits"),
        ("t = {A, ..., B}", "1:9", "'A' and 'B' do not both end in a number"),
        ("t = {..., t2}", "1:6", "a range needs a first and a last constant, as in {t0, ..., t9}"),
        ("x: int", "1:4", "a domain must be boolean, real or real[lower, upper], not 'int'"),
        ("x: real[2, 1]", "1:9", "the lower bound 2 is not below 1"),
        ("x: real[K, 1]", "1:9", "a bound must be a number or 'inf', not 'K'"),
        ("P(1): real", "1:3", "the arguments of a declaration must be names of types"),
        ("P(a!, b!)", "1:7", "only one argument may be marked '!'"),
        ("1 P(a!)", "1:5", "'a!' is only allowed in a declaration"),
        ("1 A(x): real", "1:7", "not ':'"),
        ("!A(x): real", "1:1", "only a predicate is allowed before ':'"),
        ("const max = 1", "1:7", "'max' is a function and cannot be declared"),
        ("1 A(x) ^ max", "1:10", "'max' is a function: write max(…)"),
        ("1 P(+Door)", "1:5", "'Door' is a constant: only variables are marked or shifted"),
        ("1 P(t+1.5)", "1:7", "a shift must be an integer, not '1.5'"),
        (
            "1 P(t+999999999999)",
            "1:7",
            "'999999999999' is too large a shift: the maximum is 999,999,999",
        ),
        ("1 P(t) ^ t+9999999999 = u", "1:12", "the maximum is 999,999,999"),
        ("1 P(x) where Q(+x)", "1:16", "'+x' is only allowed in the formula"),
        ("{*: 1, *: 2} P(+x)", "1:8", "'*' is given twice"),
        ("1 exist X P(X)", "1:9", "exist takes variables, but 'X' is a constant"),
        ("exist(paper)", "1:6", "expected a name after 'exist', not '('"),
        ("Forall: real", "1:7", "expected a name after 'Forall', not ':'"),
        ("1 EXIST X P(X)", "1:9", "EXIST takes variables, but 'X' is a constant"),
        ("1 (A(x); slope=1)", "1:4", "only a comparison has a slope"),
        ("1 (A(x) < 1; steep=1)", "1:14", "'steep' is not a setting of a comparison"),
        ("gaussian(A(x))", "1:1", "gaussian needs its covariances: '; cov=[[…]]'"),
        ("gaussian(A(x); cov=[1])", "1:20", "'cov' is a list of rows, [[a, b], [c, d]]"),
        ("gaussian(A(x); var=[1])", "1:16", "'var' is not a setting of gaussian"),
        ("normal(A(x), 1)", "1:12", "expected an operator or '|' after ')', not ','"),
        ('#include "a.mln"', "1:10", "'a.mln' cannot be included: its folder is unknown"),
    ],
)
def test_an_error_says_what_is_wrong_and_where(text: str, place: str, message: str) -> None:
    found = error(text)

    assert found.startswith(f"<text>:{place}: ")
    assert message in found.splitlines()[0]


@pytest.mark.parametrize(
    "text",
    [
        "1 " + " <=> ".join(["A(x)"] * 5000),
        "1 " + " - ".join(["A(x)"] * 5000),
        "1 " + " + 1 * ".join(["A(x)"] * 900) + " - 1" * 100,
        "1 " + " => ".join(["A(x)"] * 5000),
        "1 " + "!" * 5000 + "A(x)",
        "1 " + "EXIST x " * 5000 + "A(x)",
        "1 " + "abs(" * 500 + "A(x)" + ")" * 500,
        "const W = " + " / ".join(["1"] * 5000),
    ],
)
def test_an_expression_of_too_many_levels_is_refused(text: str) -> None:
    message = "the expression has more than 100 levels; split it into several rules"
    assert message in error(text).splitlines()[0]


def test_brackets_inside_brackets_are_levels_only_where_they_hold_something() -> None:
    formula = parse("1 " + "(" * 500 + "A(x)" + ")" * 500).rules[0].formula

    assert formula == Atom("A", (Variable("x"),))
    assert "brackets are nested more than 1000 deep" in error("1 " + "(" * 100_000)


def test_an_expression_of_many_levels_is_read_and_compared() -> None:
    text = "1 " + " v ".join(["A(x)"] * 100)

    assert parse(text) == parse(text)
