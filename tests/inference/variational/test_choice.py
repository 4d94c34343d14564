"""Which method is chosen where none is named, and what is said about it."""

from __future__ import annotations

import itertools

import pytest

from hylift.graph import FactorGraph, boolean
from hylift.inference import BVI, Exact, infer, run
from hylift.lifting import lift
from hylift.potentials import Table
from zoo import ZOO, ZooModel, counted_factors, friends_and_smokers, toy_hybrid_mln

CHEAP = "Exact inference was chosen, because it is cheap here."
NOT_CHEAP = "BVI(3) was chosen, because exact inference is not cheap here: "


def grid(size: int) -> FactorGraph:
    """Booleans on a grid, each linked to its neighbours."""
    cells = list(itertools.product(range(size), repeat=2))
    pairs = [[(i, j), (i + 1, j)] for i, j in cells if i + 1 < size]
    pairs += [[(i, j), (i, j + 1)] for i, j in cells if j + 1 < size]
    names = {cell: f"c({cell[0]},{cell[1]})" for cell in cells}
    alike = Table.shared([[0.3, 0.0], [0.0, 0.3]])
    return FactorGraph.build(
        dict.fromkeys(names.values(), boolean),
        [
            (alike, [[names[one], names[other]] for one, other in pairs]),
            (Table.shared([0.0, 0.1]), [[names[cells[0]]]]),
        ],
    )


@pytest.mark.parametrize("model", ZOO, ids=str)
def test_small_models_are_solved_exactly(model: ZooModel) -> None:
    posterior = infer(model.graph())

    expected = infer(model.graph(), Exact()).log_partition
    assert posterior.solution.method == "exact"
    assert posterior.solution.notes[0] == CHEAP
    assert posterior.log_partition is not None
    assert expected is not None
    assert posterior.log_partition.value == pytest.approx(expected.value, rel=1e-12)


def test_wide_models_are_solved_by_bvi_with_the_reason() -> None:
    posterior = infer(grid(24), seed=2)

    note = posterior.solution.notes[0]
    assert posterior.solution.method == "BVI(3)"
    assert note.startswith(NOT_CHEAP)
    assert "width" in note
    same = infer(grid(24), run.METHOD, seed=2)
    assert posterior.log_partition == same.log_partition


def test_a_callback_a_start_or_a_lifted_graph_ask_for_steps() -> None:
    graph = friends_and_smokers()
    earlier = infer(graph, BVI(3))
    for posterior, reason in [
        (
            infer(graph, callback=lambda step: None),
            "a callback is given, and exact inference has no steps.",
        ),
        (infer(graph, start=earlier), "an earlier posterior is given to start from."),
        (infer(lift(toy_hybrid_mln()).graph), "the graph is lifted."),
    ]:
        assert posterior.solution.method == "BVI(3)"
        assert posterior.solution.notes[0] == NOT_CHEAP + reason


def test_many_factors_are_not_tried_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CHEAP_FACTORS", 5)

    posterior = infer(friends_and_smokers(), rewrite=False)

    assert posterior.solution.notes[0] == NOT_CHEAP + "the graph has 21 factors, more than 5."


def test_factors_that_count_several_times_are_still_exact() -> None:
    assert infer(counted_factors()).solution.method == "exact"
