"""Whatever a text holds, reading, checking and grounding it end in a result or in a clear error."""

from __future__ import annotations

import pytest

from grounding.random_rules import RandomRules
from hylift.errors import HyliftError
from hylift.grounding import ground, size_estimate
from hylift.language.checks.check import problems
from hylift.language.statements import Model
from hylift.language.syntax import Atom, Unary
from hylift.language.text.formatter import format_model
from hylift.language.text.parser import parse
from language.random_text import RandomModels, Vandal

EXAMPLE = """\
// types; constants may be listed, given as a range, or left to the data
topic = {t0, ..., t9}
paper /* a comment
over two lines */
In(paper, topic)
PaperPopularity(paper): real[0, 10]
recession: real
SegType(segment, type!)
const DoorLength = 0.1

0.5  SameSession(t1, t2) * (TopicPopularity(t1) = TopicPopularity(t2))   where t1 != t2
3.0  SegType(s, Door) *
    (Length(s) = DoorLength)
0.1  In(a, x) ^ In(b, x) => EXIST y Near(a, y) v Near(b, y)
In(p, t) => Topic(t).
-0.04  posB(b)^2 + posA(a)^2
gaussian(market(c), loss(c, b); mean=[0, 0], cov=[[10, 5], [5, 10]])
normal(x(w, t+1) | a*x(w, t), q)
{t0: 0.1, t1: 0.4, *: 0}  In(p, +t)
2  (Length(s) > 0.05; slope=20)
"""

SOUND = """\
topic = {T0, T1}
time = {0, ..., 3}
In(paper, topic)
Kind(paper, topic!)
Near(paper, paper)
Pop(paper): real[0, 10]
x(paper, time): real
level: real
const W = 0.5

W  Pop(p) = 1
0.5  In(p, t) * (Pop(p) = 2.5) + !In(p, t) * (Pop(p) = W)  where t != T0
In(p, t) => EXIST s In(p, s) ^ Kind(p, s).
-0.1  x(p, t)^2 + level^2
normal(x(p, t+1) | W*x(p, t) - level, 2)
gaussian(level, Pop(p); mean=[0, W], cov=[[10, 5], [5, 10]])
{T0: 0.1, T1: -W, *: 0}  Kind(p, +t) v Near(p, q)  where Near(p, q), p != q
2  (x(p, t) > exp(level) - 1; slope=20)
1.5  forall q Near(p, q) <=> In(q, T1)
"""

LARGEST = 1_000_000
"""Most bytes of a factor graph that is made."""


def check_round_trip(model: Model) -> None:
    text = format_model(model)
    try:
        again = parse(text)
    except HyliftError as error:
        error.add_note(f"the model was written as\n{text}")
        raise
    assert again == model, f"another model was read from\n{text}"


def check_is_clear(error: HyliftError) -> None:
    """The text must begin with the place, and its first line be printable."""
    first = str(error).split("\n")[0]
    assert first.startswith("broken.mln:")
    assert first.isprintable()


def is_read(text: str) -> bool:
    """Whether a text is a model, which then must survive being written and checked."""
    try:
        try:
            model = parse(text, name="broken.mln")
        except HyliftError as error:
            check_is_clear(error)
            return False
        check_round_trip(model)
        problems(model)
        return True
    except Exception as error:
        error.add_note(f"the text was {text!r}")
        raise


def is_grounded(text: str) -> bool:
    """Whether a text is a model without errors that has a factor graph, if not too large."""
    try:
        model = parse(text, name="broken.mln")
        if any(problem.severity == "error" for problem in problems(model)):
            return False
        data = {name: ["A", "B"] for name, t in model.type_by_name.items() if t.constants is None}
        closed = closed_world(model)
        if size_estimate(model, data, closed=closed).num_bytes <= LARGEST:
            ground(model, data, closed=closed)
        return True
    except HyliftError:
        return False
    except Exception as error:
        error.add_note(f"the text was {text!r}")
        raise


def closed_world(model: Model) -> set[str]:
    """The predicates that conditions ask about."""
    conditions = (condition for rule in model.rules for condition in rule.where)
    literals = (c.operand if isinstance(c, Unary) else c for c in conditions)
    return {literal.predicate for literal in literals if isinstance(literal, Atom)}


@pytest.mark.parametrize("seed", range(4))
def test_models_survive_being_written_and_read(seed: int) -> None:
    models = RandomModels(seed)

    for _ in range(1000):
        check_round_trip(models.model())


def test_damaged_models_are_read_or_refused() -> None:
    models, vandal = RandomModels(10), Vandal(10)

    read = sum(is_read(vandal.damaged(format_model(models.model()))) for _ in range(3000))

    assert 300 < read < 2400  # neither all broken nor all harmless


def test_a_damaged_example_is_read_or_refused() -> None:
    vandal = Vandal(11)

    read = sum(is_read(vandal.damaged(EXAMPLE)) for _ in range(600))

    assert 60 < read < 540


def test_noise_is_read_or_refused() -> None:
    vandal = Vandal(12)

    read = sum(is_read(vandal.noise()) for _ in range(2400))

    assert read < 1200


@pytest.mark.filterwarnings("ignore::hylift.language.ModelWarning")
def test_a_damaged_model_is_grounded_or_refused() -> None:
    vandal = Vandal(13)

    assert is_grounded(SOUND)
    grounded = sum(is_grounded(vandal.damaged(SOUND)) for _ in range(500))

    assert 15 < grounded < 250


@pytest.mark.filterwarnings("ignore::hylift.language.ModelWarning")
def test_damaged_rules_are_grounded_or_refused() -> None:
    vandal = Vandal(14)
    texts = [format_model(RandomRules(seed).case().model) for seed in range(300)]

    grounded = sum(is_grounded(vandal.damaged(text)) for text in texts)

    assert 30 < grounded < 270


@pytest.mark.filterwarnings("ignore::hylift.language.ModelWarning")
def test_random_models_are_grounded_or_refused() -> None:
    models = RandomModels(15)

    grounded = sum(is_grounded(format_model(models.model())) for _ in range(500))

    assert grounded < 400  # most of them make no sense
