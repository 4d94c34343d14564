"""Planted traps: small models on which approximations are confident and wrong, with the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from scipy import special

import hylift as hl
from benchmarks.families.practice import Rows, Written, along, links
from benchmarks.families.score import Moments, score


def ordered_pairs(size: int = 20, weight: float = 2.0) -> Written:
    """Two modes of the same size: all of R, or all of S."""
    return Written(f"d = {{0, ..., {size - 1}}}\nR(d)\nS(d)\n{weight}  R(x) v S(y)")


def magnet(size: int = 24, weight: float = 0.25, bias: float = 0.0) -> Written:
    """Balanced modes: people who agree with everybody, or with nobody."""
    field = round(bias - 0.5 * weight * (size - 1), 6)
    fields = [(i, round(0.1 * np.sin(i), 3)) for i in range(size)]  # no two are alike
    own = "\n".join(f"{round(field + f, 6)}  S({i})" for i, f in fields)
    return Written(f"n = {{0, ..., {size - 1}}}\nS(n)\n{weight}  S(x) ^ S(y)  where x < y\n{own}")


def walls(size: int = 24, weight: float = 9.0, seed: int = 0) -> Written:
    """Nearly hard rules in loops: all are equal but for one in e^9, and a weak field decides."""
    rng = np.random.default_rng(seed)
    near = sorted({*links(rng, size, 0), *((i, (i + 1) % size) for i in range(size))})
    return Written(
        f"""
        n = {{0, ..., {size - 1}}}
        Near(n, n)
        S(n)
        {weight}  Near(x, y) ^ (S(x) <=> S(y))
        0.02  S(x)
        """,
        {"Near": near},
        ("Near",),
    )


def widths(narrow: int = 3, wide: int = 6, size: float = 1e-3) -> Written:
    """A narrow mode beside a wide one: a few precise sensors against many poor ones."""
    sensors: Rows = [(i, 8.0 + size * i) for i in range(narrow)]
    others = np.linspace(-1.0, 1.0, wide)
    return Written(
        f"""
        Off(gauge)
        Wrong(meter)
        x: real
        fine(gauge): real
        poor(meter): real
        normal(x | 0, 16)
        -4  Off(s)
        -3  Wrong(s)
        normal(fine(s) | x*!Off(s), {size**2} + 100*Off(s))
        normal(poor(s) | x*!Wrong(s), 1 + 100*Wrong(s))
        """,
        {"fine": sensors, "poor": along(others)},
    )


def needle(size: int = 14, weight: float = 0.0) -> Written:
    """One joint state of many that is as probable as all others together."""
    names = [f"S({i})" for i in range(size)]
    weight = weight or round(size * float(np.log(1.0 + np.exp(-0.1))), 3)
    return Written(
        f"""
        n = {{0, ..., {size - 1}}}
        S(n)
        -0.1  S(x)
        0.05  S(x) <=> S(x+1)
        {weight}  {" ^ ".join(names)}
        """
    )


def parity(size: int = 20, weight: float = 6.0, seed: int = 0) -> Written:
    """Nearly hard parities of three: whole code words compete, that single changes never reach."""
    rng = np.random.default_rng(seed)
    triples = [tuple(rng.choice(size, 3, replace=False).tolist()) for _ in range(size * 4 // 5)]
    return Written(
        f"""
        n = {{0, ..., {size - 1}}}
        Of(n, n, n)
        S(n)
        {weight}  Of(x, y, z) ^ (S(x) <=> (S(y) <=> S(z)))
        0.3  S(x)
        """,
        {"Of": sorted({*triples})},
        ("Of",),
    )


def transition(size: int = 20, states: int = 10, weight: float = 0.3) -> Written:
    """A first-order transition: everything in one state of many, or all states alike."""
    return Written(
        f"""
        n = {{0, ..., {size - 1}}}
        q = {{0, ..., {states - 1}}}
        S(n, q!)
        {weight}  S(x, c) ^ S(y, c)  where x < y
        {balance(size, states, weight)}  S(x, 0)
        """
    )


def balance(size: int, states: int, weight: float) -> float:
    """The weight of state 0 with which its probability is a half."""
    fields = np.linspace(-0.5, 2.0, 500)
    shares = [share(size, states, weight, field) for field in fields]
    return round(float(np.interp(0.5, shares, fields)), 4)


def share(size: int, states: int, weight: float, field: float) -> float:
    """The probability of state 0, from the generating function of counts of each state."""
    count = np.arange(size + 1)
    own = 0.5 * weight * count * (count - 1) - special.gammaln(count + 1)
    rest = np.where(count == 0, 0.0, -np.inf)
    for _ in range(states - 1):
        total = own[:, None] + rest[None, :]
        rest = np.array([special.logsumexp(np.diag(total[::-1], m - size)) for m in count])
    probs = special.softmax(own + field * count + rest[::-1])
    return float(probs @ count / size)


TRAPS: Mapping[str, Callable[[], Written]] = {
    "two modes": ordered_pairs,
    "balanced modes": magnet,
    "a lesser mode": lambda: magnet(bias=-0.08),
    "walls": walls,
    "a narrow mode": widths,
    "a needle": needle,
    "parities": parity,
    "a transition": transition,
    "a larger one": lambda: transition(40, 20, 0.2),
}


def trap(name: str) -> tuple[hl.FactorGraph, Moments]:
    """A trap, and the truth: of transitions, where all variables are alike, by counting."""
    graph = TRAPS[name]().graph()
    if graph.variables.num_states.max() < 3:
        return graph, Moments.of(hl.infer(graph, hl.Exact()))
    states = int(graph.variables.num_states[0])
    found = Moments.of(hl.infer(graph, hl.MeanField(), check=False))
    probs = np.full((graph.num_variables, states), 0.5 / (states - 1))
    probs[:, 0] = 0.5
    return graph, replace(found, probs=probs.reshape(-1))


def trapped() -> Iterator[str]:
    """A line per trap: the verdict on the default, and its largest error."""
    for name in TRAPS:
        graph, exact = trap(name)
        found = score(graph, None, exact)
        yield f"{name:16} {found.verdict:10} {found.wrong or 'right'}; {found.seconds:.1f} s"
