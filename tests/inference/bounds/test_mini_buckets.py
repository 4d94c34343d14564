"""Bounds of mini-buckets beside enumeration, and the way they become tighter."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

import hylift as hl
import zoo
from hylift.errors import ImpossibleEvidenceError, UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.bounds.buckets import Buckets, split_tables
from hylift.inference.bounds.tighten import Relaxation, Tightening
from hylift.inference.terms import Terms
from hylift.rewrite.kinds import Kinds
from random_models import graphs

ROUNDING = 1e-9


def grid(size: int, seed: int = 0, strength: float = 1.0) -> FactorGraph:
    """A grid of Booleans with random fields and couplings."""
    rng = np.random.default_rng(seed)
    at = np.arange(size * size, dtype=np.int32).reshape(size, size)
    pairs = np.concatenate(
        [
            np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1),
            np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1),
        ]
    )
    fields = hl.Table(strength * rng.normal(size=(size**2, 2)))
    couplings = strength * rng.normal(size=len(pairs))
    tables = hl.Table(couplings[:, None, None] * np.array([[1, -1], [-1, 1]]))
    rows = np.arange(len(pairs), dtype=np.int32)
    return FactorGraph(
        hl.Variables.of([hl.boolean] * size**2, hl.Names.numbered(size**2)),
        [
            hl.FactorGroup(fields, at.reshape(-1, 1), np.arange(size**2, dtype=np.int32)),
            hl.FactorGroup(tables, pairs, rows),
        ],
    )


def buckets_of(graph: FactorGraph, max_entries: int) -> Buckets:
    num_states = graph.variables.num_states
    terms = Terms.of(Kinds.of(graph).tables, num_states)
    return split_tables(num_states, [terms], max_entries)


def log_z(graph: FactorGraph) -> float:
    found = hl.infer(graph, hl.Exact(), tasks="logz").log_partition
    assert found is not None
    return found.value


def bounds(graph: FactorGraph, **settings: int) -> hl.Posterior:
    return hl.infer(graph, hl.MiniBuckets(**settings), tasks="logz")


@settings(max_examples=100, deadline=None)
@given(graph=graphs(max_discrete=6, max_reals=0), entries=st.sampled_from([1, 4, 16, 64]))
def test_the_truth_is_within_the_interval_of_any_discrete_model(
    graph: FactorGraph, entries: int
) -> None:
    try:
        true = log_z(graph)
    except ImpossibleEvidenceError:
        return

    found = bounds(graph, max_entries=entries).log_partition

    assert found is not None
    assert found.lower <= true + ROUNDING
    assert found.upper >= true
    if found.kind == "exact":
        assert found.value == pytest.approx(true, abs=ROUNDING)


def test_the_interval_shrinks_as_tables_grow_until_it_is_exact() -> None:
    graph = grid(8)
    true = log_z(graph)

    found = [bounds(graph, max_entries=2**k).log_partition for k in (8, 10, 11, 16)]

    widths = [z.upper - true for z in found if z is not None]
    assert all(after < 0.8 * before for before, after in pairwise(widths))
    assert [z.kind for z in found if z is not None] == ["interval"] * 3 + ["exact"]
    assert widths[-1] == pytest.approx(0.0, abs=1e-9)


def test_the_slope_of_a_bound_is_that_of_finite_differences() -> None:
    relaxation = Relaxation(buckets_of(grid(4), 16))
    place = np.random.default_rng(0).normal(size=len(relaxation.start()))

    slope = relaxation.slope(place, relaxation.bound(place)[1])

    assert len(place) > 50
    by_differences = approx_fprime(place, lambda at: relaxation.bound(at)[0], 1e-6)
    assert slope == pytest.approx(by_differences, abs=1e-5)


def test_a_bound_holds_with_any_costs_and_weights() -> None:
    graph = grid(4, strength=2.0)
    relaxation, rng = Relaxation(buckets_of(graph, 16)), np.random.default_rng(1)

    found = [relaxation.bound(3 * rng.normal(size=len(relaxation.start())))[0] for _ in range(50)]

    assert min(found) >= log_z(graph) - graph.log_constant


@pytest.mark.parametrize("strength", [0.1, 1.0, 4.0])
def test_no_step_raises_the_bound_and_many_make_it_much_tighter(strength: float) -> None:
    graph = grid(8, strength=strength)
    true = log_z(graph)

    posterior = bounds(graph, max_entries=2**10)

    assert posterior.solution.history is not None
    upper = -posterior.solution.history.objective
    first = bounds(graph, max_entries=2**10, max_steps=0).log_partition
    assert first is not None
    assert (np.diff([first.upper, *upper]) <= 1e-9).all()
    assert upper[-1] - true < 0.5 * (first.upper - true)
    assert upper[-1] >= true


def test_tables_and_messages_keep_to_the_limit() -> None:
    plan = buckets_of(grid(10), 2**12).plan

    assert plan.size.max() <= 2**12
    assert plan.num_messages <= 2**12


def test_without_a_lower_bound_the_kind_is_an_upper_bound() -> None:
    graph = grid(6)

    found = hl.infer(graph, hl.MiniBuckets(max_entries=64, lower=False)).log_partition

    assert found is not None
    assert found.kind == "upper bound"
    assert (found.lower, found.upper) == (-np.inf, found.value)


def test_notes_state_the_split_and_both_bounds() -> None:
    posterior = bounds(grid(6), max_entries=2**6)

    split, lower = posterior.solution.notes
    assert split.startswith("The tables of ")
    assert "parts: log Z is at most " in split
    assert lower.startswith("log Z is at least ")
    assert "to" in repr(posterior)
    assert "(interval)" in repr(posterior)


def test_an_interval_survives_storage_and_json(tmp_path) -> None:  # type: ignore[no-untyped-def]
    posterior = bounds(grid(6), max_entries=64)

    posterior.save(tmp_path / "answer.npz")
    loaded = hl.Posterior.load(tmp_path / "answer.npz")

    assert loaded.log_partition == posterior.log_partition


def test_impossible_evidence_is_found_out() -> None:
    never = hl.Table(np.full((1, 2, 2), -np.inf))
    graph = hl.FactorGraph.build({"a": hl.boolean, "b": hl.boolean}, [(never, ["a", "b"])])

    with pytest.raises(ImpossibleEvidenceError, match="no joint state is possible"):
        bounds(graph)


def test_a_run_out_of_time_returns_a_bound() -> None:
    graph = grid(12)

    posterior = hl.infer(graph, hl.MiniBuckets(max_entries=2**12), seconds=1e-6)

    assert posterior.solution.result == "out_of_time"
    assert posterior.log_partition is not None
    assert posterior.log_partition.upper >= log_z(graph)


def test_steps_can_be_resumed() -> None:
    def begin() -> Tightening:
        return Tightening(Relaxation(buckets_of(grid(6), 64)), 20)

    whole, first, second = begin(), begin(), begin()
    for _ in range(8):
        whole.step()
    for _ in range(4):
        first.step()
    second.restore({name: np.array(array) for name, array in first.arrays().items()})
    for _ in range(4):
        second.step()

    assert second.point.bound == whole.point.bound


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_entries": 0}, "max_entries must be an integer of at least 1, not 0"),
        ({"max_steps": -1}, "max_steps must be an integer of at least 0, not -1"),
        ({"lower": 1}, "lower must be True or False, not 1"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        hl.MiniBuckets(**settings)  # type: ignore[arg-type]


def test_reals_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="mini-buckets take discrete variables, and '"):
        bounds(zoo.gaussian_chain())
