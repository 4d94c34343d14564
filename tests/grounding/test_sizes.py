"""What would not fit is said before it is tried."""

from __future__ import annotations

import pytest

from hylift.errors import IntractableError
from hylift.grounding import SizeWarning, ground, sizes
from hylift.language import parse

MODEL = """
paper = {p0, ..., p99}
topic = {t0, ..., t9}
In(paper, topic)
Near(paper, paper)
0.5  In(p, t) ^ In(q, t) => Near(p, q)
"""


@pytest.fixture
def memory(monkeypatch):
    """A machine with little memory."""

    def have(num_bytes: int) -> None:
        monkeypatch.setattr(sizes, "free_memory", lambda: num_bytes)
        monkeypatch.setattr(sizes, "total_memory", lambda: num_bytes)

    return have


def test_a_grounding_that_may_not_fit_is_warned_of_with_its_numbers(memory):
    memory(8_000_000)

    with pytest.warns(SizeWarning) as found:
        ground(parse(MODEL))

    assert str(found[0].message) == (
        "grounding makes 11,000 variables, 100,000 factors, 6.2 MB, and 8.0 MB of memory are free. "
        "Most factors, 100,000, come from the rule '0.5 In(p, t) ^ In(q, t) => Near(p, q)': a "
        "closed-world predicate that multiplies or guards it, or a condition after 'where', would "
        "reduce them"
    )


def test_a_grounding_that_cannot_fit_is_refused(memory):
    memory(1_000_000)

    with pytest.raises(IntractableError, match="100,000 factors"):
        ground(parse(MODEL))


def test_a_closed_world_makes_it_fit(memory):
    memory(1_000_000)

    graph = ground(parse(MODEL), {"In(p1, t1)": True, "In(p2, t1)": True}, closed=["In"])

    assert graph.num_factors == 4
