"""Mixtures end no worse than single products, whatever the seed; and say what they cannot see."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import hylift as hl

SENSORS = hl.parse("""
    In(sensor, room)
    Faulty(sensor)
    reading(sensor): real
    temperature(room): real
    -3  Faulty(s)
    normal(temperature(r) | 20, 9)
    In(s, r) * normal(reading(s) | 20*Faulty(s) + temperature(r)*!Faulty(s), 0.25 + 100*Faulty(s))
""")


def three_sensors() -> hl.FactorGraph:
    places = {"In(s1, hall)": True, "In(s2, hall)": True, "In(s3, attic)": True}
    seen = {"reading(s1)": 21.0, "reading(s2)": 31.0, "reading(s3)": 25.0}
    return hl.ground(SENSORS, places | seen, closed=["In"])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("components", [2, 3, 5])
def test_a_mixture_ends_no_higher_than_a_single_product(components: int, seed: int) -> None:
    graph = three_sensors()
    single = hl.infer(graph, hl.MeanField()).solution.objective
    exact = hl.infer(graph, hl.Exact())

    found = hl.infer(graph, hl.BVI(components), seed=seed)

    assert found.solution.objective < single
    assert exact.compare(found).mean_kl < 0.02


def test_coarse_to_fine_begins_anew_where_classes_lie_in_different_modes() -> None:
    rng = np.random.default_rng(0)
    room = rng.integers(0, 8, 160)
    warmth = rng.normal(20, 3, 8)
    broken = rng.random(160) < 0.05
    value = np.where(broken, rng.normal(20, 10, 160), rng.normal(warmth[room], 0.5))
    table = pd.DataFrame({"sensor": np.arange(160), "room": room, "value": value})
    evidence = {"In": table[["sensor", "room"]], "reading": table[["sensor", "value"]]}
    graph = hl.ground(SENSORS, evidence, closed=["In"])

    exact = hl.infer(graph, hl.BVI(3), lift="exact").solution.objective
    coarse = hl.infer(graph, hl.BVI(3), lift="coarse-to-fine").solution.objective

    assert exact is not None
    # Both stop where steps gain next to nothing, not at the same point.
    assert coarse == pytest.approx(exact, abs=0.05)


def test_deviations_of_closely_tied_reals_are_said_to_be_too_small() -> None:
    rng = np.random.default_rng(2)
    model = hl.parse("""
        Promo(shop, day)
        base: real
        offset(shop): real
        revenue(shop, day): real
        -2  Promo(s, d)
        normal(base | 12, 25)
        normal(offset(s) | 0, 1)
        normal(revenue(s, d) | base + offset(s) + 4*Promo(s, d), 0.5)
    """)
    rows = [
        (f"s{shop}", day, 12 + offset + rng.normal(0, 0.7))
        for shop, offset in enumerate(rng.normal(size=5))
        for day in range(6)
    ]
    sales = pd.DataFrame(rows, columns=["shop", "day", "revenue"])
    graph = hl.ground(model, {"revenue": sales})

    tied = hl.infer(graph, hl.BVI(3))
    free = hl.infer(three_sensors(), hl.BVI(3))

    note = next(note for note in tied.solution.notes if "ties reals closely" in note)
    assert "that of 'base' is 0." in note
    drawn = hl.infer(graph, hl.Gibbs(), seed=0).marginal("base").std
    said = re.search(r"is (0\.\d+), and (0\.\d+) in the Gaussian", note)
    assert said is not None
    # Draws also know that the states are not certain.
    assert 2 * float(said[1]) < float(said[2]) < drawn
    assert not any("ties reals closely" in note for note in free.solution.notes)
