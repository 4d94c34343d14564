"""The best assignment on lattices: proven to be the best, or with a bound on what is better."""

from __future__ import annotations

import numpy as np
import pytest

import hylift as hl
from benchmarks.certified.families import drawn
from benchmarks.certified.models import Sensors
from hylift.errors import IntractableError
from hylift.inference.exact.lattices import promotion
from hylift.inference.exact.maximum import search
from hylift.progress import silent


def on_lattices(graph: hl.FactorGraph, monkeypatch: pytest.MonkeyPatch) -> hl.Assignment:
    """The best assignment, with closed forms and dominated states ruled out."""

    def refuse(*_):
        raise IntractableError("not here")

    first = iter([refuse])
    plain = search._search
    monkeypatch.setattr(promotion, "CHEAP", 0.0)
    monkeypatch.setattr(search, "_search_beyond", refuse)
    monkeypatch.setattr(search, "_search", lambda *a: next(first, plain)(*a))
    found = hl.infer(graph, hl.Exact(), tasks=["map"], progress=silent, rewrite=False).map()
    monkeypatch.undo()
    return found


@pytest.mark.parametrize("seed", range(6))
def test_what_is_called_the_best_is_the_best(seed, monkeypatch):
    graph = drawn("star", seed, 12).graph
    expected = hl.infer(graph, hl.Exact(), tasks=["map"]).map()

    found = on_lattices(graph, monkeypatch)

    assert expected.kind == "exact"
    assert found.energy <= expected.energy + found.gap + 1e-9 * abs(expected.energy)
    if found.kind == "exact":
        assert found.gap == 0
        assert found.energy == pytest.approx(expected.energy, abs=1e-9)


def test_the_best_states_of_many_sensors_are_proven(monkeypatch):
    graph = Sensors.drawn(120, 3).graph()
    expected = hl.infer(graph, hl.Exact(), tasks=["map"]).map()

    found = on_lattices(graph, monkeypatch)

    assert found.kind == "exact"
    np.testing.assert_allclose(found.values, expected.values, atol=1e-9)


def test_two_best_states_are_not_proven(monkeypatch):
    model = hl.parse("""
        place = {0, ..., 19}
        High(place)
        x: real
        normal(x | 0, 9)
        normal(x | 2*High(p) - 1, 4)
    """)

    found = on_lattices(hl.ground(model), monkeypatch)

    assert found.kind == "estimate"
    assert 0 < found.gap < 0.1
    assert abs(found["x"]) > 0.5
