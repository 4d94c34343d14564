"""Whatever a text holds, reading it ends in a model that can be written, or in one clear error."""

from __future__ import annotations

import pytest

from hylift.errors import HyliftError
from hylift.language.syntax import Model
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
    """Whether a text is a model, which then must survive being written."""
    try:
        try:
            model = parse(text, name="broken.mln")
        except HyliftError as error:
            check_is_clear(error)
            return False
        check_round_trip(model)
        return True
    except Exception as error:
        error.add_note(f"the text was {text!r}")
        raise


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
