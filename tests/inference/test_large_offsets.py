"""Timestamps and other large numbers: no bound is called one where rounding may break it."""

import numpy as np
import pytest

import hylift as hl
from hylift.inference.method import Method

TRUTH = -2.2602783253329024

METHODS = (hl.EP(), hl.SMC(), hl.Gibbs(), hl.BVI(3), hl.NPVI(2), hl.MeanField(), hl.MiniBuckets())


def readings(offset: float) -> hl.FactorGraph:
    model = hl.parse(f"""
        x: real
        y: real
        Late
        normal(x | {offset!r}, 1)
        -1 Late
        normal(y | x + 5 * Late, 1)
    """)
    return hl.ground(model, {"y": offset + 5})


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_lost_digits_are_noted_and_no_bound_is_left(method: Method) -> None:
    found = hl.infer(readings(1.7e9), method)

    assert "Rounding may change" in " ".join(found.solution.notes)
    log_z = found.log_partition
    assert log_z is None or log_z.kind == "estimate"
    assert log_z is None or log_z.lower <= TRUTH <= log_z.upper


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_few_lost_digits_widen_bounds_without_a_note(method: Method) -> None:
    found = hl.infer(readings(1e4), method)

    assert "Rounding may change" not in " ".join(found.solution.notes)
    log_z = found.log_partition
    assert log_z is None or log_z.lower <= TRUTH <= log_z.upper


def test_a_gaussian_far_from_zero_is_not_called_exact_by_ep() -> None:
    model = hl.parse("x: real\ny: real\nnormal(x | 1.7e9, 1)\nnormal(y | x, 1)")

    found = hl.infer(hl.ground(model, {"y": 1.7e9}), hl.EP())

    assert found.log_partition is not None
    assert found.log_partition.kind == "estimate"


@pytest.mark.parametrize("method", [hl.EP(), hl.BP()], ids=lambda method: method.name)
@pytest.mark.parametrize("weight", [1e9, 1e12, 1e15])
def test_weights_that_cancel_leave_nothing_exact(method: Method, weight: float) -> None:
    model = hl.parse(f"A\nB\n{weight:.0f}  A ^ B\n-{weight:.0f}  B")

    found = hl.infer(hl.ground(model), method, check=False)

    log_z = found.log_partition
    assert log_z is not None
    assert log_z.kind == "estimate"
    assert abs(log_z.value - np.log(3.0)) <= log_z.error
    assert found.trust.verdict != "certified"
