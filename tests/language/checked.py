"""A model to check rules in, and what the checks find there."""

from hylift.language.checks.check import problems
from hylift.language.report import Problem
from hylift.language.text.parser import parse

HEADER = """\
topic = {t0, t1, t2}
time = {0, ..., 9}
paper
In(paper, topic)
Near(paper, paper)
Topic(topic)
Kind(paper, topic!)
At(paper, time)
Pop(paper): real[0, 10]
Len(paper): real
Wet(paper): boolean
Dry(paper): boolean
rain: boolean
level: real
const DoorLength = 0.1
const Half = 0.5
"""


def found(text: str) -> list[Problem]:
    """The problems of a model, without predicates that are declared but not used."""
    listed = problems(parse(HEADER + text, name="m.mln"))
    return [p for p in listed if "no rule uses" not in p.message and "improper" not in p.message]


def underlined(problem: Problem) -> str:
    place = problem.place
    line = place.source.text.splitlines()[place.line - 1]
    return line[place.column - 1 : place.end - 1]


def assert_one(text: str, severity: str, message: str, words: str) -> None:
    only = found(text)
    assert [(p.severity, p.message) for p in only] == [(severity, message)]
    assert underlined(only[0]) == words
