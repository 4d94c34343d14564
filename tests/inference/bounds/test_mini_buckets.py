"""Bounds of mini-buckets beside enumeration, and the way they become tighter."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

import hylift as hl
import zoo
from hylift.errors import ImpossibleEvidenceError, IntractableError, UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.bounds.reals import split_reals
from hylift.inference.bounds.tighten import Relaxation, Tightening
from hylift.inference.held import arrays_of
from hylift.inference.terms import Terms
from hylift.rewrite.kinds import Kinds
from inference.bounds.wide import Family, wide_model
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


def relaxation_of(graph: FactorGraph, max_entries: int) -> Relaxation:
    kinds, num_states = Kinds.of(graph), graph.variables.num_states
    reals = None
    if kinds.quadratics:
        reals = split_reals(graph.variables, kinds.quadratics, max_entries)
    return Relaxation.of(num_states, Terms.of(kinds.tables, num_states), reals, max_entries)


def log_z(graph: FactorGraph) -> float:
    found = hl.infer(graph, hl.Exact(), tasks="logz").log_partition
    assert found is not None
    return found.value


def bounds(graph: FactorGraph, **settings: int) -> hl.Posterior:
    return hl.infer(graph, hl.MiniBuckets(**settings), tasks="logz")


@settings(max_examples=100, deadline=None)
@given(
    graph=graphs(max_discrete=5, max_reals=3, max_bounded=1),
    entries=st.sampled_from([1, 4, 16, 64]),
)
def test_the_truth_is_within_the_interval_of_any_model(graph: FactorGraph, entries: int) -> None:
    try:
        known = hl.infer(graph, hl.Exact(), tasks="logz").log_partition
    except ImpossibleEvidenceError:
        return
    assert known is not None

    found = bounds(graph, max_entries=entries).log_partition

    assert found is not None
    assert found.lower <= known.value + known.error + ROUNDING
    assert found.upper >= known.value - known.error
    if found.kind == "exact":
        assert found.value == pytest.approx(known.value, abs=known.error + ROUNDING)


@pytest.mark.parametrize("count", [6, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", get_args(Family))
def test_the_truth_is_within_intervals_that_shrink_as_tables_grow(
    family: Family, count: int
) -> None:
    """Up to 300 random models, of five families, that are too wide for exact inference."""
    widths: dict[int, list[float]] = {8: [], 128: [], 512: [], 2**18: []}

    for seed in range(count):
        graph = wide_model(family, seed)
        known = hl.infer(graph, hl.Exact(), tasks="logz").log_partition
        with pytest.raises(IntractableError):
            hl.infer(graph, hl.Exact(max_entries=32), tasks="logz")
        for entries, found in widths.items():
            log_z = bounds(graph, max_entries=entries).log_partition
            assert log_z is not None
            assert known is not None
            assert log_z.lower <= known.value + known.error + ROUNDING, (seed, entries)
            assert log_z.upper >= known.value - known.error, (seed, entries)
            found.append(log_z.upper - (known.value if family == "bounded" else log_z.lower))

    mean = [float(np.mean(found)) for found in widths.values()]
    assert all(after <= before + 1e-6 for before, after in pairwise(mean)), mean
    assert mean[-1] < (0.8 * mean[0] if family == "bounded" else 1e-6)


def test_the_interval_shrinks_as_tables_grow_until_it_is_exact() -> None:
    graph = grid(8)
    true = log_z(graph)

    found = [bounds(graph, max_entries=2**k).log_partition for k in (8, 10, 11, 16)]

    widths = [z.upper - true for z in found if z is not None]
    assert all(after < 0.8 * before for before, after in pairwise(widths))
    assert [z.kind for z in found if z is not None] == ["interval"] * 3 + ["exact"]
    assert widths[-1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("family", get_args(Family))
def test_the_slope_of_a_bound_is_that_of_finite_differences(family: Family) -> None:
    relaxation = relaxation_of(wide_model(family, 0), 16)
    start = relaxation.start()
    place = start + 0.05 * np.random.default_rng(0).normal(size=len(start))

    slope = relaxation.slope(place, relaxation.bound(place)[1])

    assert len(place) > 20
    by_differences = approx_fprime(place, lambda at: relaxation.bound(at)[0], 1e-6)
    assert slope == pytest.approx(by_differences, abs=1e-4)


@pytest.mark.parametrize("family", get_args(Family))
def test_a_bound_holds_with_any_costs_and_weights(family: Family) -> None:
    graph = wide_model(family, 1)
    relaxation, rng = relaxation_of(graph, 16), np.random.default_rng(1)
    start = relaxation.start()

    found = [
        relaxation.bound(start + scale * rng.normal(size=len(start)))[0]
        for scale in (0.1, 0.5, 3.0)
        for _ in range(20)
    ]

    assert min(found) >= log_z(graph) - Kinds.of(graph).log_constant - ROUNDING


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
    plan = relaxation_of(grid(10), 2**12).buckets.plan

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

    split, upper, lower = posterior.solution.notes
    assert split.startswith("The factors of ")
    assert split.endswith(" parts.")
    assert upper.startswith("log Z is at most ")
    assert lower.startswith("log Z is at least ")
    assert "to" in repr(posterior)
    assert "(interval)" in repr(posterior)


def test_an_interval_survives_storage(tmp_path: Path) -> None:
    posterior = bounds(grid(6), max_entries=64)

    posterior.save(tmp_path / "answer.npz")
    loaded = hl.Posterior.load(tmp_path / "answer.npz")

    assert loaded.log_partition == posterior.log_partition


@pytest.mark.parametrize(
    "name",
    [
        "Segmentation_11",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("Alchemy_11", "CSP_11", "DBN_11", "Pedigree_11")
        ),
    ],
)
def test_published_instances_are_within_their_intervals(name: str, data_dir: Path) -> None:
    model = hl.read_uai(data_dir / "uai" / f"{name}.uai")
    seen = data_dir / "uai" / f"{name}.uai.evid"
    graph = model.observe(hl.read_evidence(seen, model.variables.num_states))
    known = log_z(graph)

    loose, tight = (bounds(graph, max_entries=2**k).log_partition for k in (8, 16))

    assert loose is not None
    assert tight is not None
    assert tight.kind == "interval"
    assert loose.lower - ROUNDING <= known <= tight.upper < loose.upper


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
        return Tightening(relaxation_of(grid(6), 64), 20)

    whole, first, second = begin(), begin(), begin()
    for _ in range(8):
        whole.step()
    for _ in range(4):
        first.step()
    second.restore({name: a.copy() for name, a in arrays_of(first.arrays()).items()})
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


def test_functions_are_refused_by_name() -> None:
    with pytest.raises(
        UnsupportedError, match="mini-buckets take tables and quadratics, and a fac"
    ):
        bounds(zoo.function_of_bounded_reals())


def test_reals_that_cannot_be_split_are_refused_with_a_remedy() -> None:
    """Each sensor confines the reading in one state only; a table forbids that none does."""
    gate = hl.ConditionalQuadratic(
        np.array([[[[0.0]], [[-0.5]]]]), np.zeros((1, 2, 1)), np.zeros((1, 2))
    )
    some = np.zeros((1,) + (2,) * 6)
    some[0, 0, 0, 0, 0, 0, 0] = -np.inf
    names = [f"on{i}" for i in range(6)]
    graph = FactorGraph.build(
        dict.fromkeys(names, hl.boolean) | {"level": hl.real},
        [(gate, [[name, "level"] for name in names]), (hl.Table(some), names)],
    )

    assert bounds(graph).log_partition is not None
    with pytest.raises(IntractableError, match="'level' and the reals coupled to it depend on too"):
        bounds(graph, max_entries=16)


def test_bounds_of_reals_count_where_nothing_else_confines_them() -> None:
    graph = FactorGraph.build({"share": hl.interval(0.0, 4.0)}, [])

    found = bounds(graph).log_partition

    assert found is not None
    assert found.lower <= np.log(4.0) <= found.upper < np.log(4.0) + 0.73
