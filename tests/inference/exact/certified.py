"""The comparison of exact inference with the truth."""

from __future__ import annotations

import hylift as hl
from benchmarks.certified.run import rounding
from benchmarks.certified.truth import Apart, Truth
from tests.oracle import Answer

TOLERANCE = 1e-9
"""Of `Exact()`, for log Z and every probability."""


def assert_certified(graph: hl.FactorGraph, expected: Truth | Answer) -> None:
    """The answer is called exact, and its error is below what it states."""
    if isinstance(expected, Truth):
        expected = expected.answer(graph)

    found = hl.infer(graph, hl.Exact())

    log_z, apart = found.log_partition, Apart.of(found, expected)
    assert log_z.kind == "exact"
    assert log_z.error <= TOLERANCE
    assert apart.log_z <= log_z.error + rounding(graph)
    assert apart.prob <= log_z.error + rounding(graph)
    assert apart.mean <= 1e-8
    assert apart.std <= 1e-8
