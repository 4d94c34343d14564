"""Random models of twelve families, as practitioners write them: rules, and data from a seed.

Data are mostly drawn from a world like that of the rules, so that some models are easy and others
have several explanations of the same data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import hylift as hl

Rng = np.random.Generator
Rows = list[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Written:
    """Rules in the language of models, and the evidence that they are grounded with."""

    rules: str
    evidence: dict[str, Rows] = field(default_factory=dict)
    closed: tuple[str, ...] = ()

    def graph(self) -> hl.FactorGraph:
        return hl.ground(hl.parse(self.rules), self.evidence, closed=list(self.closed))


def number(rng: Rng, low: float, high: float) -> float:
    """A parameter with three decimals, not zero."""
    return round(float(rng.uniform(low, high)), 3) or 0.001


def links(rng: Rng, size: int, most: int) -> Rows:
    """Pairs of which each constant but the first has one to an earlier one, and some have more."""
    pairs = {(int(rng.integers(i)), i) for i in range(1, size)}
    for _ in range(int(rng.integers(most + 1))):
        first, second = sorted(rng.choice(size, 2, replace=False).tolist())
        pairs.add((first, second))
    return [*sorted(pairs)]


def some(rng: Rng, rows: Rows, share: float) -> Rows:
    return [row for row in rows if rng.random() < share]


def along(values: object) -> Rows:
    return [(i, float(v)) for i, v in enumerate(np.asarray(values))]


def smokers(rng: Rng) -> Written:
    """Friends smoke alike, and get cancer; in half of them stress is a real."""
    people = int(rng.integers(4, 16))
    stress = f"""
        stress(person): real
        normal(stress(x) | {number(rng, -1, 1)}, {number(rng, 0.5, 2)})
        {number(rng, 0.5, 2)}  Smokes(x) * stress(x)
        {number(rng, 0.1, 0.5)}  Friends(x, y) * (stress(x) = stress(y))
    """
    seen = some(rng, [(p, bool(rng.random() < 0.4)) for p in range(people)], 0.3)
    return Written(
        f"""
        person = {{0, ..., {people - 1}}}
        Friends(person, person)
        Smokes(person)
        Cancer(person)
        {number(rng, -2, 0.5)}  Smokes(x)
        {number(rng, -3, 0)}  Cancer(x)
        {number(rng, 0.5, 2.5)}  Smokes(x) => Cancer(x)
        {number(rng, 0.5, 2.5)}  Friends(x, y) => (Smokes(x) <=> Smokes(y))
        {stress if rng.random() < 0.5 else ""}
        """,
        {"Friends": links(rng, people, people), "Cancer": seen},
        ("Friends",),
    )


def hard_rules(rng: Rng) -> Written:
    """Pumps in lines: hard rules say which may run, gauges read the flow of a line."""
    lines, each = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    pumps = lines * each
    runs = rng.random(pumps) < 0.6
    per_pump, noise = number(rng, 1, 3), number(rng, 0.2, 2)
    flow = per_pump * runs.reshape(lines, each).sum(axis=1) + rng.normal(0, noise**0.5, lines)
    reserve = rng.choice(
        [
            "Runs(x) ^ Next(x, y) => !Runs(y).",
            "Broken(x) ^ Next(x, y) => Runs(y).",
            "Runs(y) ^ Next(x, y) => Runs(x) v Broken(x).",
        ]
    )
    ties = [(p, p + 1) for p in range(pumps - 1) if rng.random() < 0.8]
    return Written(
        f"""
        pump = {{0, ..., {pumps - 1}}}
        line = {{0, ..., {lines - 1}}}
        On(pump, line)
        Next(pump, pump)
        Runs(pump)
        Broken(pump)
        flow(line): real
        gauge(line): real
        {number(rng, -2.5, -0.5)}  Broken(x)
        {number(rng, -0.5, 1.5)}  Runs(x)
        !(Runs(x) ^ Broken(x)).
        {reserve}
        On(x, l) * normal(flow(l) | {per_pump}*Runs(x)*{each}, {number(rng, 2, 8)})
        normal(gauge(l) | flow(l), {noise})
        """,
        {
            "On": [(p, p // each) for p in range(pumps)],
            "Next": [*ties],
            "gauge": some(rng, along(flow), 0.8),
        },
        ("On", "Next"),
    )


def hierarchies(rng: Rng) -> Written:
    """Pupils in classes in schools, with outliers among them and strong classes."""
    schools, each = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    classes = schools * each
    pupils = classes * int(rng.integers(1, 4))
    rise, bonus, noise = number(rng, 1, 4), number(rng, 1.5, 6), number(rng, 0.3, 2)
    effect = rng.normal(0, 1.5, schools)[np.arange(classes) // each]
    effect = effect + rise * (rng.random(classes) < 0.4) + rng.normal(0, 0.7, classes)
    score = effect[np.arange(pupils) % classes] + bonus * (rng.random(pupils) < 0.25)
    score += rng.normal(0, noise**0.5, pupils)
    return Written(
        f"""
        Of(class, school)
        In(pupil, class)
        Strong(class)
        Gifted(pupil)
        mean: real
        level(school): real
        effect(class): real
        score(pupil): real
        {number(rng, -1.5, 0.5)}  Strong(c)
        {number(rng, -3, -0.5)}  Gifted(p)
        normal(mean | 0, {number(rng, 1, 9)})
        normal(level(s) | mean, {number(rng, 0.3, 2)})
        Of(c, s) * normal(effect(c) | level(s) + {rise}*Strong(c), {number(rng, 0.3, 1)})
        In(p, c) * normal(score(p) | effect(c) + {bonus}*Gifted(p), {noise})
        """,
        {
            "Of": [(c, c // each) for c in range(classes)],
            "In": [(p, p % classes) for p in range(pupils)],
            "score": some(rng, along(score), 0.9),
        },
        ("Of", "In"),
    )


def walks(rng: Rng) -> Written:
    """A level that walks from day to day; its sensor is faulty on some days."""
    days, step, noise = int(rng.integers(4, 26)), number(rng, 0.1, 2), number(rng, 0.1, 1)
    level = np.cumsum(rng.normal(0, step**0.5, days))
    faulty, wide = rng.random(days) < 0.25, number(rng, 9, 100)
    wild, fine = rng.normal(0, wide**0.5, days), rng.normal(level, noise**0.5)
    sticky = f"{number(rng, 0.5, 2)}  Faulty(d) <=> Faulty(d+1)" if rng.random() < 0.5 else ""
    return Written(
        f"""
        day = {{0, ..., {days - 1}}}
        Faulty(day)
        level(day): real
        reading(day): real
        {number(rng, -3, -0.5)}  Faulty(d)
        {sticky}
        normal(level(0) | 0, {number(rng, 0.5, 9)})
        normal(level(d+1) | level(d), {step})
        normal(reading(d) | level(d)*!Faulty(d), {noise} + {wide}*Faulty(d))
        """,
        {"reading": some(rng, along(np.where(faulty, wild, fine)), 0.9)},
    )


def sensors(rng: Rng) -> Written:
    """Readings of sensors in rooms, some broken; in half of them rooms have a common climate."""
    rooms = int(rng.integers(1, 6))
    num = rooms * int(rng.integers(4, 11))
    room, noise, wide = rng.integers(0, rooms, num), number(rng, 0.1, 1), number(rng, 9, 100)
    warmth = rng.normal(20, 3, rooms)
    broken = rng.random(num) < 0.3
    reading = np.where(broken, rng.normal(20, wide**0.5, num), rng.normal(warmth[room], noise**0.5))
    climate = f"""
        climate: real
        normal(climate | 20, {number(rng, 1, 9)})
        normal(temperature(r) | climate, {number(rng, 0.5, 4)})
    """
    alone = f"normal(temperature(r) | 20, {number(rng, 4, 16)})"
    return Written(
        f"""
        In(sensor, room)
        Faulty(sensor)
        reading(sensor): real
        temperature(room): real
        {number(rng, -3, -0.3)}  Faulty(s)
        {climate if rng.random() < 0.5 else alone}
        In(s, r) * normal(reading(s) | 20*Faulty(s) + temperature(r)*!Faulty(s),
            {noise} + {wide}*Faulty(s))
        """,
        {"In": [(s, int(r)) for s, r in enumerate(room)], "reading": along(reading)},
        ("In",),
    )


def regimes(rng: Rng) -> Written:
    """A level that moves as its regime says, read on most days."""
    days, keep = int(rng.integers(4, 26)), number(rng, 0.6, 3)
    up, down = number(rng, 0.5, 3), number(rng, -3, -0.5)
    noise, var = number(rng, 0.2, 2), [number(rng, 0.1, 1), number(rng, 0.3, 2)]
    regime, level, levels = 0, 0.0, []
    for _ in range(days):
        regime = regime if rng.random() < 0.75 else int(rng.integers(3))
        drift = (0.0, up, down)[regime]
        level = 0.9 * level + rng.normal(drift, var[min(regime, 1)] ** 0.5)
        levels.append(level)
    reading = np.array(levels) + rng.normal(0, noise**0.5, days)
    return Written(
        f"""
        day = {{0, ..., {days - 1}}}
        regime = {{Calm, Up, Down}}
        Regime(day, regime!)
        level(day): real
        reading(day): real
        {number(rng, 0, 1)}  Regime(d, Calm)
        {keep}  Regime(d, r) ^ Regime(d+1, r)
        normal(level(0) | 0, 4)
        normal(level(d+1) | 0.9*level(d) + {up}*Regime(d+1, Up) + {down}*Regime(d+1, Down),
            {var[0]} + {var[1]}*!Regime(d+1, Calm))
        normal(reading(d) | level(d), {noise})
        """,
        {"reading": some(rng, along(reading), 0.8)},
    )


def couplings(rng: Rng) -> Written:
    """Switches that move reals, and neighbours that pull at each other: often two modes."""
    rooms = int(rng.integers(3, 13))
    low, rise = number(rng, -3, 3), number(rng, 2, 8)
    near = links(rng, rooms, 3) if rng.random() < 0.6 else []
    pull = number(rng, 0.03, 0.4)
    tie = "Near(r, s) * (temperature(r) = temperature(s))" if near else (
        "(temperature(r) = temperature(s))  where r < s"
    )  # fmt: skip
    agree = number(rng, 0.2, 1)
    thermometer = low + rise * rng.random(rooms) + rng.normal(0, 1, rooms)
    return Written(
        f"""
        room = {{0, ..., {rooms - 1}}}
        {"Near(room, room)" if near else ""}
        Heated(room)
        temperature(room): real
        thermometer(room): real
        {number(rng, -1.5, 1)}  Heated(r)
        {agree}  Heated(r) <=> Heated(r+1)
        normal(temperature(r) | {low} + {rise}*Heated(r), {number(rng, 1, 4)})
        {pull}  {tie}
        normal(thermometer(r) | temperature(r), {number(rng, 1, 9)})
        """,
        {**({"Near": near} if near else {}), "thermometer": some(rng, along(thermometer), 0.3)},
        ("Near",) if near else (),
    )


def open_links(rng: Rng) -> Written:
    """Who likes which paper is partly hidden; a link ties the taste of one to a quality."""
    readers, papers = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    pairs = [(r, p) for r in range(readers) for p in range(papers)]
    known = some(rng, [(*pair, bool(rng.random() < 0.5)) for pair in pairs], 0.4)
    stars = rng.normal(0, 2, papers)
    return Written(
        f"""
        reader = {{0, ..., {readers - 1}}}
        paper = {{0, ..., {papers - 1}}}
        Likes(reader, paper)
        Expert(reader)
        Good(paper)
        quality(paper): real
        stars(paper): real
        {number(rng, -1, 1)}  Likes(r, p)
        {number(rng, -1.5, 0.5)}  Expert(r)
        {number(rng, 0.5, 2.5)}  Likes(r, p) ^ Expert(r) => Good(p)
        {number(rng, 0.2, 1.5)}  Likes(r, p) ^ Good(p)
        normal(quality(p) | {number(rng, 1, 4)}*Good(p), {number(rng, 0.5, 2)})
        {number(rng, 0.1, 0.6)}  Likes(r, p) * (quality(p) = {number(rng, 1, 4)})
        normal(stars(p) | quality(p), {number(rng, 0.3, 2)})
        """,
        {"Likes": known, "stars": some(rng, along(stars), 0.5)},
    )


def clustering(rng: Rng) -> Written:
    """Points in two or three clusters, each with a centre of its own that is real."""
    clusters, points = int(rng.integers(2, 4)), int(rng.integers(5, 31))
    apart = number(rng, 0.5, 3)
    prior = [round(apart * (k - (clusters - 1) / 2), 2) for k in range(clusters)]
    noise, wide = number(rng, 0.2, 1.5), number(rng, 0.5, 6)
    centre = rng.normal(prior, wide**0.5)
    place = rng.normal(centre[rng.integers(0, clusters, points)], noise**0.5)
    if clusters == 3:
        place = place[:8]
    means = " + ".join(f"centre({k})*Cluster(p, {k})" for k in range(clusters))
    priors = "\n".join(f"normal(centre({k}) | {at}, {wide})" for k, at in enumerate(prior))
    like = links(rng, len(place), 0)[: int(rng.integers(len(place)))] if rng.random() < 0.4 else []
    alike = f"{number(rng, 0.5, 2)}  Like(p, q) ^ Cluster(p, k) ^ Cluster(q, k)" if like else ""
    return Written(
        f"""
        point = {{0, ..., {len(place) - 1}}}
        cluster = {{0, ..., {clusters - 1}}}
        Cluster(point, cluster!)
        {"Like(point, point)" if like else ""}
        place(point): real
        centre(cluster): real
        {number(rng, -1, 1)}  Cluster(p, 0)
        {priors}
        {alike}
        normal(place(p) | {means}, {noise})
        """,
        {"place": along(place), **({"Like": like} if like else {})},
        ("Like",) if like else (),
    )


def bounded(rng: Rng) -> Written:
    """Shares between 0 and 1 along a street; a shop that cheats reports too much."""
    shops = int(rng.integers(3, 16))
    share = np.clip(np.cumsum(rng.normal(0, 0.15, shops)) + rng.uniform(0.05, 0.95), 0, 1)
    cheats, extra = rng.random(shops) < 0.3, number(rng, 0.2, 0.6)
    noise = number(rng, 0.003, 0.05)
    report = share + extra * cheats + rng.normal(0, noise**0.5, shops)
    return Written(
        f"""
        shop = {{0, ..., {shops - 1}}}
        Cheats(shop)
        share(shop): real[0, 1]
        report(shop): real
        {number(rng, -2, 0)}  Cheats(s)
        {number(rng, 0, 1.5)}  Cheats(s) <=> Cheats(s+1)
        normal(share(s) | {number(rng, 0, 1)}, {number(rng, 0.05, 1)})
        {number(rng, 1, 30)}  share(s) = share(s+1)
        normal(report(s) | share(s) + {extra}*Cheats(s), {noise})
        """,
        {"report": some(rng, along(report), 0.7)},
    )


def logistic(rng: Rng) -> Written:
    """Pupils and questions of known or hidden difficulty, with guesses."""
    pupils, questions = int(rng.integers(3, 13)), int(rng.integers(2, 6))
    ability, hard = rng.normal(0, 1.2, pupils), rng.normal(0, 1, questions)
    right = rng.random((pupils, questions)) < 1 / (1 + np.exp(hard - ability[:, None]))
    pairs = [(p, q) for p in range(pupils) for q in range(questions)]
    answers = some(rng, [(p, q, bool(right[p, q])) for p, q in pairs], 0.85)
    hidden = int(rng.integers(0, 2))
    slope = number(rng, 0.7, 3)
    mood = f"""
        Tired(pupil)
        {number(rng, -1.5, 0.5)}  Tired(p)
        normal(ability(p) | {number(rng, -3, -1)}*Tired(p), {number(rng, 0.5, 1.5)})
    """
    plain = f"normal(ability(p) | {number(rng, -1, 1)}, {number(rng, 0.5, 3)})"
    return Written(
        f"""
        pupil = {{0, ..., {pupils - 1}}}
        question = {{0, ..., {questions - 1}}}
        Right(pupil, question)
        ability(pupil): real[-8, 8]
        difficulty(question): real[-8, 8]
        {mood if rng.random() < 0.6 else plain}
        normal(difficulty(q) | 0, {number(rng, 0.5, 2)})
        Right(p, q) * (ability(p) > difficulty(q); slope={slope})
        !Right(p, q) * (ability(p) < difficulty(q); slope={slope})
        """,
        {"Right": answers, "difficulty": along(hard)[hidden:]},
    )


def many_parts(rng: Rng) -> Written:
    """Households that nothing connects, each with members and an income."""
    homes = int(rng.integers(3, 8))
    member = np.repeat(np.arange(homes), rng.integers(1, 5, homes))
    rise, noise = number(rng, 1, 5), number(rng, 0.3, 2)
    works = rng.random(len(member)) < 0.5
    income = rise * np.bincount(member, works, homes) + rng.normal(0, noise**0.5, homes)
    most = number(rng, 0.3, 2)
    wages: Rows = [(m, float(rise * w + rng.normal(0, 1.5))) for m, w in enumerate(works)]
    return Written(
        f"""
        Of(member, home)
        Works(member)
        Rich(home)
        wage(member): real
        income(home): real
        stated(home): real
        paid(member): real
        {number(rng, -1, 1)}  Works(m)
        {number(rng, -1.5, 0)}  Rich(h)
        {number(rng, 0.3, 2)}  Of(m, h) ^ Rich(h) => Works(m)
        normal(income(h) | {rise}*Rich(h), {number(rng, 0.5, 3)})
        normal(wage(m) | {rise}*Works(m), {number(rng, 0.3, 1.5)})
        {number(rng, 0.1, 1)}  Of(m, h) * (wage(m) = income(h))
        normal(paid(m) | wage(m), {most})
        normal(stated(h) | income(h), {noise})
        """,
        {
            "Of": [(m, int(h)) for m, h in enumerate(member)],
            "stated": some(rng, along(income), 0.7),
            "paid": some(rng, wages, 0.5),
        },
        ("Of",),
    )


PRACTICE: dict[str, Callable[[Rng], Written]] = {
    "smokers": smokers,
    "hard rules": hard_rules,
    "hierarchies": hierarchies,
    "walks": walks,
    "sensors": sensors,
    "regimes": regimes,
    "couplings": couplings,
    "open links": open_links,
    "clustering": clustering,
    "bounded": bounded,
    "logistic": logistic,
    "many parts": many_parts,
}


def written(family: str, seed: int) -> Written:
    """A model of a family; the same for the same seed."""
    rng = np.random.default_rng([list(PRACTICE).index(family), seed])
    return PRACTICE[family](rng)
