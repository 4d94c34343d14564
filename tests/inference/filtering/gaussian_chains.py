"""Small Gaussian models along time, and their parts up to a time."""

import numpy as np
import pyarrow as pa

import hylift as hl
from hylift.graph import FactorGroup

WELLS = """
    well = {w0, ..., w2}
    month = {0, ..., 5}
    year = {1, 2}

    Measured(well, month)
    OfYear(month, year)
    x(well, month): real
    trend(month): real
    season(year): real
    o(well, month): real

    normal(x(w, t) | 1, 4)  where t = 0
    normal(x(w, t+1) | 0.9 * x(w, t) + 0.1, 0.3)
    normal(trend(t) | 0, 2)  where t = 0
    normal(trend(t+1) | 0.7 * trend(t), 1)
    normal(season(m) | 0, 0.5)
    normal(o(w, t) | x(w, t) + trend(t) + season(m), 1.5)  where Measured(w, t), OfYear(t, m)
"""
CHAIN = """
    t = {0, ..., 7}
    x(t): real
    o(t): real

    normal(x(k) | 0, 2)  where k = 0
    normal(x(k+1) | 0.8 * x(k), 0.5)
    normal(o(k) | x(k), 0.7)
"""
SQUARES = """
    t = {0, ..., 5}
    x(t): real
    y(t): real
    -0.4 x(k)^2
    -0.3 (x(k+1) - x(k))^2
    0.1 x(k) * y(k)
    -0.5 y(k)^2 + 0.7 * y(k)
    0.2 x(k+1) * y(k)
"""
INPUTS = """
    t = {0, ..., 4}
    x(t): real
    u(t): real
    o(t): real

    normal(x(k) | 0, 2)  where k = 0
    normal(x(k+1) | x(k) + u(k+1), 0.5)
    normal(o(k) | x(k), 0.7)
"""
SAME_TIME = """
    t = {0, ..., 4}
    x(t): real
    slope(t): real
    level: real
    o(t): real

    normal(o(k) | 2 * x(k) - slope(k), 0.5)
    normal(x(k) | level + slope(k), 0.3)
    normal(slope(k+1) | slope(k), 0.2)
    normal(slope(k) | 0, 3)  where k = 0
    normal(level() | 5, 10)
"""
PARAMETERS = """
    well = {w0, w1}
    t = {0, ..., 4}
    x(well, t): real
    o(well, t): real
    a(well): real
    q(well): real[0, inf]
    r(well): real[0, inf]
    gain(t): real

    normal(x(w, k) | 0, q(w)/(1 - a(w)^2))  where k = 0
    normal(x(w, k+1) | a(w) * x(w, k), q(w))
    normal(o(w, k) | gain(k) * x(w, k) + a(w), r(w))
"""
SWITCHED = """
    t = {0, ..., 4}
    x(t): real
    o(t): real
    Wet(t)

    normal(x(k) | 0, 2)  where k = 0
    normal(x(k+1) | 0.8 * x(k), 0.5)
    -2 Wet(k) * (o(k) - x(k))^2
    -0.1 !Wet(k) * (o(k) - x(k))^2
"""


def wells() -> hl.FactorGraph:
    """Three wells with a common trend and seasons; most months are not measured, one not at all."""
    rng = np.random.default_rng(1)
    well, month = np.nonzero(rng.random((3, 6)) < 0.6)
    well, month = well[month != 3], month[month != 3]
    names = np.array(["w0", "w1", "w2"])[well]
    value = rng.normal(2, 2, size=len(well))
    measured = pa.table({"well": names, "month": month})
    evidence = {
        "Measured": measured,
        "o": measured.append_column("value", pa.array(value)),
        "OfYear": pa.table({"month": np.arange(6), "year": np.arange(6) % 2 + 1}),
    }
    return hl.ground(hl.parse(WELLS), evidence, closed=["Measured", "OfYear"])


def with_parameters() -> hl.FactorGraph:
    """Two wells whose parameters are observed reals, so that evidence makes quadratics of all
    factors."""
    values = {"a(w0)": 0.9, "a(w1)": -0.4, "q(w0)": 0.5, "q(w1)": 2.0, "r(w0)": 0.3, "r(w1)": 1.1}
    gains = {f"gain({k})": 0.5 + k for k in range(5)}
    levels = {"o(w0,0)": 1.0, "o(w0,3)": -0.5, "o(w1,1)": 2.0, "o(w1,3)": 0.1, "o(w1,4)": 0.7}
    return hl.ground(hl.parse(PARAMETERS)).observe({**values, **gains, **levels})


def observed(text: str, **values: dict[int, object]) -> hl.FactorGraph:
    """A model with evidence on predicates of one argument."""
    seen = {f"{name}({at})": v for name, of in values.items() for at, v in of.items()}
    return hl.ground(hl.parse(text)).observe(seen)


def chains() -> dict[str, tuple[hl.FactorGraph, str]]:
    """Graphs by name, with the argument that is their time."""
    levels = {0: 1.0, 1: -0.5, 4: 2.0, 7: 0.3}
    inputs = {1: -1.0, 2: 2.0, 3: 0.5, 4: 0.1}
    rain = {k: k % 2 == 0 for k in range(5)}
    soft = {k: hl.Soft(v, 0.2 + k) for k, v in levels.items()}
    return {
        "chain": (observed(CHAIN, o=levels), "t"),
        "chain with known start": (observed(CHAIN, o={1: 0.2, 2: 0.4}, x={0: 1.0}), "t"),
        "chain with known middle": (observed(CHAIN, o={1: 0.2, 5: 0.4}, x={3: 1.0}), "t"),
        "chain measured softly": (observed(CHAIN, x=soft, o={2: 1.0}), "t"),
        "wells": (wells(), "month"),
        "squares": (observed(SQUARES, y={2: 1.0, 3: -1.0}), "t"),
        "inputs": (observed(INPUTS, u=inputs, o={0: 1.0, 2: 1.5, 4: 0.0}), "t"),
        "same time": (observed(SAME_TIME, o={0: 3.0, 1: 4.0, 3: 6.0}), "t"),
        "parameters": (with_parameters(), "t"),
        "switched": (observed(SWITCHED, Wet=rain, o={k: 0.5 * k for k in range(5)}), "t"),
    }


def up_to(
    graph: hl.FactorGraph, time: np.ndarray, last: int, evidence_before: int
) -> hl.FactorGraph:
    """The factors whose variables are all of time `last` or earlier, and the evidence that is
    earlier than another time."""
    ids = np.flatnonzero(time <= last)
    new_id = np.cumsum(time <= last) - 1
    groups = []
    for group in graph.groups:
        some = group.take(np.flatnonzero((time[group.scope] <= last).all(axis=1)))
        scope = new_id[some.scope]
        groups.append(FactorGroup(some.potential, scope, some.row, some.multiplicity, some.label))
    seen = graph.evidence
    is_discrete = graph.variables.num_states[seen.variable] > 0
    keep = (time[seen.variable] < evidence_before) | (is_discrete & (time[seen.variable] <= last))
    evidence = hl.Evidence.of(new_id[seen.variable[keep]], seen.value[keep], seen.var[keep])
    return hl.FactorGraph(graph.variables.take(ids), tuple(groups), evidence, graph.log_constant)
