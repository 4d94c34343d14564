"""What a user reads about each mistake: file, line, column, the line, a caret, and a remedy."""

import pytest

from hylift.errors import ModelError
from hylift.language import check, parse

HEADER = """\
topic = {t0, t1}
In(paper, topic)
Topic(topic)
Pop(paper): real[0, 10]
1  In(p, t) => Topic(t)
0.3  Pop(p) = 1
"""

ERRORS = {
    "unknown predicate": """\
papers.mln:7:6: unknown predicate 'Topc'. Did you mean 'Topic'?
    0.3  Topc(t)
         ^^^^""",
    "wrong arity": """\
papers.mln:7:6: 'In' takes 2 arguments (paper, topic), not 1
    0.3  In(p)
         ^^""",
    "types that clash": """\
papers.mln:7:23: variable 'p' is a 'paper' in In(p, t) and a 'topic' in Topic(p)
    0.3  In(p, t) ^ Topic(p)
                          ^""",
    "a real used as a truth value": """\
papers.mln:7:18: 'Pop(p)' is real, but '=>' needs a truth value: compare it with a number, and \
multiply by that comparison
    0.3  In(p, t) => Pop(p)
                     ^^^""",
    "a weight that is not finite": """\
papers.mln:7:1: a weight must be finite, but 'exp(1000)' is not
    exp(1000)  In(p, t)
    ^^^^^^^^^""",
    "a negative weight that is not finite": """\
papers.mln:7:1: a weight must be finite, but '-exp(1000)' is not
    -exp(1000)  In(p, t)
    ^^^^^^^^^^""",
    "a weight in a table that is not finite": """\
papers.mln:7:6: a weight must be finite, but 'exp(1000)' is not
    {t0: exp(1000), *: 0}  In(p, +t)
         ^^^^^^^^^""",
    "a weight that is too large to write": """\
papers.mln:7:1: '1e400' is too large for a number
    1e400  In(p, t)
    ^^^^^""",
    "a constant that is not finite": """\
papers.mln:7:11: constant 'W' must be finite, but 'exp(1000)' is not
    const W = exp(1000)
              ^^^^^^^^^""",
    "an unbound variable in a condition": """\
papers.mln:7:27: variable 'q' is compared in where, but no atom of the rule has it
    0.3  In(p, t)  where p != q
                              ^""",
    "an unbound variable in a formula": """\
papers.mln:7:17: variable 'q' is compared, but no atom of the rule has it
    0.3  In(p, t) ^ q = A
                    ^""",
    "an unbound variable of a quantifier": """\
papers.mln:7:6: EXIST names 'q', but its formula does not use it
    0.3  EXIST q In(p, t)
         ^^^^^^^^^^^^^^^^""",
    "a hard rule that is a comparison of numbers": """\
papers.mln:7:1: 'Pop(p) = 1' is a soft comparison of numbers, but a hard rule needs a truth value: \
give the rule a weight in place of the period
    Pop(p) = 1.
    ^^^^^^^^^^""",
    "a hard rule that is a real": """\
papers.mln:7:1: 'Pop(p)' is a number, but a hard rule needs a truth value: give the rule a weight \
in place of the period
    Pop(p).
    ^^^""",
    "a hard rule that is a product": """\
papers.mln:7:1: 'In(p, t) * (Pop(p) = 1)' is a number, but a hard rule needs a truth value: give \
the rule a weight in place of the period
    In(p, t) * (Pop(p) = 1).
    ^^^^^^^^^^^^^^^^^^^^^^^""",
}


def last_line(text: str) -> str:
    """The line of the model that an error shows."""
    return text.splitlines()[1].removeprefix("    ")


@pytest.mark.parametrize("text", ERRORS.values(), ids=ERRORS.keys())
def test_an_error_is_told_in_full(text: str) -> None:
    with pytest.raises(ModelError) as raised:
        check(parse(HEADER + last_line(text), name="papers.mln"))

    assert str(raised.value) == text


FINITE = "the density may be improper in 'x'"
REMEDY = "give it bounds or add a rule such as '-0.01 x(p)^2'"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("1  x(p)", "none of its rules has a negative square of it"),
        ("1  x(p)^2", "its rules favour large values"),
        (
            "1  In(p, t) * (x(p) = 1)",
            "its rules confine it only in some states (for example, not where In(p, t) is "
            "false, unless 'In' is closed-world)",
        ),
    ],
)
def test_a_real_that_may_run_away_is_warned_about_in_full(rule: str, reason: str) -> None:
    model = parse(f"{HEADER}x(paper): real\n{rule}\n", name="papers.mln")

    assert [str(warning) for warning in check(model)] == [
        f"papers.mln:7:1: {FINITE}: {reason}; {REMEDY}\n    x(paper): real\n    ^"
    ]
