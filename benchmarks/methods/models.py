"""Models of different kinds, small enough for all methods together to take seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import hylift as hl
from experiments.instances import papers, rgm, toy

NUM_TOWNS, HOURS = 12, (3, 12)
SIDE = 10
NUM_PEOPLE = 30
READINGS = (19.0, 20.0, 35.0, 21.0, 23.0, 22.0)


@dataclass(frozen=True, slots=True)
class Model:
    """A graph of a certain kind."""

    name: str
    about: str
    graph: Callable[[], hl.FactorGraph]
    seconds: float = 10.0
    """For each method; enough for one whose marginals the others can be held against."""


def _tree() -> hl.FactorGraph:
    model = hl.parse(f"""
        town = {{T0, ..., T{NUM_TOWNS - 1}}}
        hour = {{0, ..., 23}}
        sky = {{Sun, Cloud, Rain}}
        Sky(town, hour, sky!)
        Umbrellas(town, hour)
        1.5  Sky(t, h, s) ^ Sky(t, h+1, s)
        0.8  Sky(t, h, Sun)
        2    Umbrellas(t, h) <=> Sky(t, h, Rain)
    """)
    rng = np.random.default_rng(0)
    seen = {
        f"Umbrellas(T{town},{hour})": bool(rng.random() < 0.5)
        for town in range(NUM_TOWNS // 2)
        for hour in HOURS
    }
    # Three groundings of the first rule have the same two variables: as one factor, no loop.
    return hl.merge_factors(hl.ground(model, seen))


def _grid() -> hl.FactorGraph:
    rng = np.random.default_rng(0)
    ids = np.arange(SIDE * SIDE, dtype=np.int32).reshape(SIDE, SIDE)
    right = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    links, spin = np.concatenate([right, down]), np.array([-1.0, 1.0])
    own = rng.uniform(-1, 1, (SIDE * SIDE, 1)) * spin
    pairs = rng.uniform(-1, 1, (len(links), 1, 1)) * np.outer(spin, spin)
    groups = (
        hl.FactorGroup(hl.Table(own), ids.reshape(-1, 1)),
        hl.FactorGroup(hl.Table(pairs), links),
    )
    return hl.FactorGraph(hl.Variables.uniform(hl.boolean, SIDE * SIDE), groups)


def _smokers() -> hl.FactorGraph:
    model = hl.parse(f"""
        person = {{P0, ..., P{NUM_PEOPLE - 1}}}
        Smokes(person)
        Cancer(person)
        Friends(person, person)
        -1.4  Smokes(x)
        -2.3  Cancer(x)
        -4.6  Friends(x, y)  where x != y
        1.5   Smokes(x) => Cancer(x)
        1.1   Friends(x, y) => (Smokes(x) <=> Smokes(y))  where x != y
    """)
    seen = {"Smokes(P0)": True, "Smokes(P1)": False, "Friends(P0,P2)": True, "Friends(P1,P3)": True}
    return hl.ground(model, seen)


def _functions() -> hl.FactorGraph:
    model = hl.parse(f"""
        room = {{0, ..., {len(READINGS) - 1}}}
        temperature(room): real[0, 40]
        reading(room): real[0, 40]
        Broken(room)
        -1.5   Broken(r)
        -0.3   (temperature(r) - temperature(r+1))^2
        -0.01  (temperature(r) - 20)^2
        -1     log(1 + 4*(reading(r) - temperature(r))^2) * !Broken(r)
    """)
    return hl.ground(model, {f"reading({room})": value for room, value in enumerate(READINGS)})


def _hard_rules() -> hl.FactorGraph:
    model = hl.parse("""
        line = {0, ..., 3}
        pump = {A, B, C}
        On(line, pump)
        flow(line): real
        On(l, A) v On(l, B) v On(l, C).
        !(On(l, p) ^ On(l, q))  where p != q.
        0.3   On(l, A)
        5     On(l, p) <=> On(l+1, p)
        normal(flow(l) | 4*On(l, A) + 2*On(l, B), 1)
        -0.5  (flow(l) - flow(l+1))^2
    """)
    return hl.ground(model, {"flow(0)": hl.Soft(2.0, 4.0)})


MODELS = (
    Model("tree", "weather of 12 towns along 24 hours, discrete, without loops", _tree),
    Model("grid", "10 × 10 Boolean variables with random fields and couplings", _grid),
    Model("smokers", "30 people, friends smoke alike: discrete, all tied to all", _smokers),
    Model("recession", "the paper's relational Gaussian model, a fifth of it observed",
          lambda: rgm.generated(0, 0.2).graph),
    Model("toy", "the paper's hybrid toy: positions that depend on attractions",
          lambda: toy.instance().graph),
    Model("readings", "thermometers, some broken: a function of the user's own on bounded reals",
          _functions),
    Model("pumps", "one of three pumps per line, by hard rules, and its flow", _hard_rules),
    Model("papers", "the paper's popularity of papers and topics, hybrid",
          lambda: papers.generated(0, "clean").graph, seconds=30.0),
)  # fmt: skip
