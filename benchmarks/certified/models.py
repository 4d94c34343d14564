"""Models in which an integral over a real replaces exponentially many joint states."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import hylift as hl

Vector = NDArray[np.float64]

QUICK_START = """
    In(sensor, room)
    Faulty(sensor)
    reading(sensor): real
    temperature(room): real
    -3  Faulty(s)
    normal(temperature(r) | 20, 9)
    In(s, r) * normal(reading(s) | 20*Faulty(s) + temperature(r)*!Faulty(s), 0.25 + 100*Faulty(s))
"""


def _along(argument: str, value: Vector) -> pa.Table:
    """The values of a predicate for 0, 1, 2, …"""
    return pa.table({argument: np.arange(len(value)), "value": value})


@dataclass(frozen=True, slots=True)
class Sensors:
    """Readings of sensors in rooms, some broken, as on the page 'Quick start'."""

    room: NDArray[np.int64]  # (sensor,)
    reading: Vector  # (sensor,)

    @classmethod
    def drawn(cls, num_sensors: int = 1000, num_rooms: int = 25) -> Sensors:
        rng = np.random.default_rng(0)
        room = rng.integers(0, num_rooms, num_sensors)
        warmth = rng.normal(20, 3, num_rooms)
        broken = rng.random(num_sensors) < 0.05
        wild, fine = rng.normal(20, 10, num_sensors), rng.normal(warmth[room], 0.5)
        return cls(room, np.where(broken, wild, fine))

    @classmethod
    def in_pairs(cls, num_rooms: int, *, alike: bool) -> Sensors:
        """Two sensors a room, with the same two readings everywhere or with different ones."""
        reading = np.tile([21.0, 24.0], num_rooms)
        if not alike:
            reading += np.random.default_rng(0).normal(0, 2, len(reading))
        return cls(np.repeat(np.arange(num_rooms), 2), reading)

    def graph(self, rules: str = QUICK_START) -> hl.FactorGraph:
        tables = {
            "In": pa.table({"sensor": np.arange(len(self.room)), "room": self.room}),
            "reading": _along("sensor", self.reading),
        }
        return hl.ground(hl.parse(rules), tables, closed=["In"])


@dataclass(frozen=True, slots=True)
class Rooms:
    """Rooms whose temperatures are all tied to each other, each heated or not."""

    num_rooms: int
    weight: float = -0.5  # log-odds of heating, before the rooms are tied

    def graph(self) -> hl.FactorGraph:
        return hl.ground(
            hl.parse(f"""
                room = {{0, ..., {self.num_rooms - 1}}}
                Heated(room)
                temperature(room): real
                {self.weight}  Heated(r)
                normal(temperature(r) | 12 + 8*Heated(r), 4)
                -0.1  (temperature(r) - temperature(s))^2  where r != s
            """)
        )


@dataclass(frozen=True, slots=True)
class Regimes:
    """A level that moves as its regime says, read every day with an error."""

    reading: Vector  # (day,)
    keep: float = 0.95
    back: float = 0.9
    drift: tuple[float, ...] = (0.0, 1.0, -1.5)  # of a regime
    step_var: tuple[float, ...] = (0.25, 1.0, 4.0)
    reading_var: float = 1.0

    @classmethod
    def drawn(cls, num_days: int = 1000) -> Regimes:
        rng = np.random.default_rng(0)
        model = cls(np.zeros(num_days))
        regime, level, levels = 0, 0.0, []
        for day in range(num_days):
            if day:
                regime = regime if rng.random() < model.keep else (regime + rng.integers(1, 3)) % 3
                step = rng.normal(model.drift[regime], np.sqrt(model.step_var[regime]))
                level = model.back * level + step
            levels.append(level)
        return cls(np.array(levels) + rng.normal(0, np.sqrt(model.reading_var), num_days))

    def graph(self) -> hl.FactorGraph:
        by_regime = [f"{{}}*Regime(d+1, {name})" for name in ("Calm", "Up", "Down")]
        drift = " + ".join(map(str.format, by_regime, self.drift))
        var = " + ".join(map(str.format, by_regime, self.step_var))
        days = len(self.reading)
        model = hl.parse(f"""
            day = {{0, ..., {days - 1}}}
            regime = {{Calm, Up, Down}}
            Regime(day, regime!)
            level(day): real
            reading(day): real
            {math.log(1 / 3)}  Regime(0, r)
            {math.log(self.keep)}  Regime(d, r) ^ Regime(d+1, r)
            {math.log((1 - self.keep) / 2)}  Regime(d, r) ^ Regime(d+1, s)  where r != s
            normal(level(0) | 0, 4)
            normal(level(d+1) | {self.back}*level(d) + {drift}, {var})
            normal(reading(d) | level(d), {self.reading_var})
        """)
        return hl.ground(model, {"reading": _along("day", self.reading)})


@dataclass(frozen=True, slots=True)
class Hamilton:
    """Hamilton's switching AR(4) of the growth of US GNP, at its published estimates."""

    growth: Vector  # (quarter,)
    stay: tuple[float, float] = (0.754673, 1 - 0.095915)
    mean: tuple[float, float] = (-0.358811, 1.163516)
    ar: tuple[float, ...] = (0.013486, -0.057521, -0.246983, -0.212923)
    var: float = float(np.exp(-0.262658) ** 2)

    LOG_LIKELIHOOD = -181.26339

    @classmethod
    def read(cls, folder: Path) -> Hamilton:
        return cls(np.loadtxt(folder / "rgnp.csv", delimiter=",", skiprows=1)[:, 1])

    @property
    def start(self) -> Vector:
        """(regime,): the stationary distribution."""
        leave = 1 - np.array(self.stay)
        return leave[::-1] / leave.sum()

    @property
    def move(self) -> Vector:
        """(regime, next regime)."""
        (a, b) = self.stay
        return np.array([[a, 1 - a], [1 - b, b]])

    def graph(self) -> hl.FactorGraph:
        low, rise = self.mean[0], self.mean[1] - self.mean[0]
        apart = [f"(growth(q+{4 - i}) - {low} - {rise}*Up(q+{4 - i}))" for i in range(1, 5)]
        apart = [text.replace("+0", "") for text in apart]
        past = " + ".join(f"{phi}*{text}" for phi, text in zip(self.ar, apart, strict=True))
        (a, b), (c, d) = np.log(self.move).tolist()
        model = hl.parse(f"""
            quarter = {{0, ..., {len(self.growth) - 1}}}
            Up(quarter)
            growth(quarter): real
            {math.log(self.start[1])}  Up(0)
            {math.log(self.start[0])}  !Up(0)
            {a}  !Up(q) ^ !Up(q+1)
            {b}  !Up(q) ^ Up(q+1)
            {c}  Up(q) ^ !Up(q+1)
            {d}  Up(q) ^ Up(q+1)
            normal(growth(q+4) | {low} + {rise}*Up(q+4) + {past}, {self.var})
        """)
        return hl.ground(model, {"growth": _along("quarter", self.growth)})


@dataclass(frozen=True, slots=True)
class Walk:
    """A level that walks from day to day; its sensor is faulty on some days."""

    reading: Vector  # (day,)

    @classmethod
    def drawn(cls, num_days: int = 200) -> Walk:
        rng = np.random.default_rng(0)
        level = np.cumsum(rng.normal(0, 1, num_days))
        faulty = rng.random(num_days) < 0.1
        return cls(np.where(faulty, rng.normal(0, 10, num_days), rng.normal(level, 0.5)))

    def graph(self) -> hl.FactorGraph:
        days = len(self.reading)
        model = hl.parse(f"""
            day = {{0, ..., {days - 1}}}
            Faulty(day)
            level(day): real
            reading(day): real
            -2  Faulty(d)
            normal(level(0) | 0, 1)
            normal(level(d+1) | level(d), 1)
            normal(reading(d) | level(d)*!Faulty(d), 0.25 + 99.75*Faulty(d))
        """)
        return hl.ground(model, {"reading": _along("day", self.reading)})


COUNTED = {
    "two ordered sets": """
        n = {0, ..., 19}
        H(n)
        T(n)
        !H(x) v !T(x).
        H(y) => H(x)  where x <= y.
        T(x) => T(y)  where x <= y.
    """,
    "derangements of six": """
        n = {0, ..., 5}
        Perm(n, n)
        EXIST y Perm(x, y).
        EXIST x Perm(x, y).
        !(Perm(x, y) ^ Perm(x, z))  where y != z.
        !(Perm(x, y) ^ Perm(z, y))  where x != z.
        !Perm(x, x).
    """,
    "one of eight": """
        n = {0, ..., 7}
        P(n)
        EXIST x P(x).
        !(P(x) ^ P(y))  where x != y.
    """,
    "twenty by twenty": """
        d = {0, ..., 19}
        R(d)
        S(d)
        2  R(x) v S(y)
    """,
}
"""Discrete models whose worlds can be counted, and that approximations get wrong."""
