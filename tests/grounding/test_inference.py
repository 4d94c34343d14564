"""Answers about grounded models against enumeration of what their rules say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special, stats

import oracle
from hylift.graph import Soft
from hylift.grounding import ground
from hylift.inference import Exact, infer
from hylift.language import parse
from hylift.language.statements import Model
from slow import Evaluator

Key = tuple[str, ...]
SlowWorld = dict[Key, float | bool]
Likelihood = Callable[[SlowWorld], float]


@dataclass(frozen=True)
class SlowAnswer:
    """What inference should find, by ground atom."""

    log_z: float
    probability: dict[Key, float]
    mean: dict[Key, float]
    var: dict[Key, float]


def constants_of(model: Model) -> dict[str, list[str]]:
    return {declared.name: list(declared.constants or ()) for declared in model.types}


def discrete_worlds(model: Model, observed: SlowWorld) -> Iterator[SlowWorld]:
    """Every joint state of the discrete atoms that agrees with what is observed."""
    constants = constants_of(model)
    choices: list[list[SlowWorld]] = []
    for predicate in model.predicates:
        if not predicate.domain.is_discrete:
            continue
        keys = list(itertools.product(*(constants[t] for t in predicate.arguments)))
        if predicate.unique is None:
            choices += [[{(predicate.name, *k): truth} for truth in (False, True)] for k in keys]
            continue
        place = predicate.unique
        groups = itertools.groupby(
            sorted(keys, key=lambda k: k[:place] + k[place + 1 :]),
            key=lambda k: k[:place] + k[place + 1 :],
        )
        for _, members in groups:
            group = list(members)
            choices.append([{(predicate.name, *k): k == true for k in group} for true in group])
    allowed = [
        [c for c in options if all(observed.get(key, value) == value for key, value in c.items())]
        for options in choices
    ]
    for parts in itertools.product(*allowed):
        yield {key: value for part in parts for key, value in part.items()}


def enumerated(
    text: str, observed: SlowWorld | None = None, likelihood: Likelihood = lambda world: 0.0
) -> SlowAnswer:
    """Enumerates discrete atoms; reals are Gaussian in every one of their joint states."""
    model, observed = parse(text), observed or {}
    constants = constants_of(model)
    reals = [
        (predicate.name, *words)
        for predicate in model.predicates
        if not predicate.domain.is_discrete
        for words in itertools.product(*(constants[t] for t in predicate.arguments))
    ]
    hidden = [key for key in reals if key not in observed]
    worlds = list(discrete_worlds(model, observed))
    slices = []
    for world in worlds:

        def density(values: np.ndarray, world: SlowWorld = world) -> float:
            full = {**world, **observed, **dict(zip(hidden, values.tolist(), strict=True))}
            return Evaluator(model, constants, full).log_density() + likelihood(full)

        slices.append(oracle.gaussian(density, len(hidden)))
    log_totals = np.array([found.log_total for found in slices])
    log_z = float(special.logsumexp(log_totals))
    weights = np.exp(log_totals - log_z)
    probability = {
        key: float(sum(w for w, world in zip(weights, worlds, strict=True) if world[key]))
        for key in worlds[0]
    }
    mean = sum(w * found.mean for w, found in zip(weights, slices, strict=True))
    second = sum(w * found.second for w, found in zip(weights, slices, strict=True))
    return SlowAnswer(
        log_z,
        probability,
        dict(zip(hidden, mean, strict=True)),
        dict(zip(hidden, second - np.square(mean), strict=True)),
    )


def assert_answers(
    text: str,
    expected: SlowAnswer,
    evidence: object = None,
    closed: tuple[str, ...] = (),
) -> None:
    model = parse(text)
    graph = ground(model, evidence, closed=closed)
    posterior = infer(graph)
    names = set(graph.variables.names.render().to_pylist())

    assert posterior.log_partition is not None
    assert posterior.log_partition.value == pytest.approx(expected.log_z, abs=1e-8)
    assert oracle.solve(graph).log_z == pytest.approx(expected.log_z, abs=1e-8)
    for key, probability in expected.probability.items():
        name, state = variable_of(model, key)
        if name in names:
            found = posterior.marginal(name).prob(state)
            assert found == pytest.approx(probability, abs=1e-9), name
    for key, mean in expected.mean.items():
        found = posterior.marginal(variable_of(model, key)[0])
        assert found.mean == pytest.approx(mean, abs=1e-8)
        assert found.var == pytest.approx(expected.var[key], abs=1e-8)


def variable_of(model: Model, key: Key) -> tuple[str, str]:
    """The name of the variable of a ground atom, and the state in which the atom is true."""
    predicate = model.predicate_by_name[key[0]]
    words, state = list(key[1:]), "true"
    if predicate.unique is not None:
        state = words.pop(predicate.unique)
    return (f"{key[0]}({','.join(words)})" if words else key[0]), state


def test_a_clause_of_two_makes_each_true_in_two_of_three_worlds():
    posterior = infer(ground(parse("H: boolean\nS: boolean\nH v S.\n")))

    assert posterior.marginal("H").prob("true") == pytest.approx(2 / 3, abs=1e-15)
    assert posterior.log_partition.value == pytest.approx(math.log(3), abs=1e-15)


SMOKERS = """
person = {Ann, Bob, Cid}
Smokes(person)
Cancer(person)
Friends(person, person)
0.7  Smokes(x)
1.5  Smokes(x) => Cancer(x)
1.1  Friends(x, y) ^ Smokes(x) => Smokes(y)  where x < y
-0.5 Friends(x, y) where x < y
Friends(Ann, Bob) v Friends(Bob, Cid).
"""
FRIENDS = [("Friends", a, b) for a in ("Ann", "Bob", "Cid") for b in ("Ann", "Bob", "Cid")]
UNUSED = {("Friends", a, b): False for _, a, b in FRIENDS if not a < b}
"""Atoms that stand in no grounding, so that they are no variables of the graph."""


def test_friends_and_smokers_without_evidence():
    assert_answers(SMOKERS, enumerated(SMOKERS, UNUSED))


def test_friends_and_smokers_with_evidence():
    observed = {("Smokes", "Ann"): True, ("Cancer", "Bob"): False, ("Friends", "Ann", "Cid"): True}
    evidence = {"Smokes(Ann)": True, "Cancer(Bob)": False, "Friends(Ann,Cid)": True}

    assert_answers(SMOKERS, enumerated(SMOKERS, UNUSED | observed), evidence)


def test_friends_and_smokers_with_a_closed_world():
    true = {("Friends", "Ann", "Bob"), ("Friends", "Ann", "Cid"), ("Friends", "Cid", "Bob")}
    observed: SlowWorld = {key: key in true for key in FRIENDS}
    evidence = {"Friends": [key[1:] for key in sorted(true)]}

    assert_answers(SMOKERS, enumerated(SMOKERS, observed), evidence, closed=("Friends",))


def test_probabilities_are_likelihoods_of_booleans():
    def likelihood(world: SlowWorld) -> float:
        smokes, cancer = world["Smokes", "Bob"], world["Cancer", "Cid"]
        return math.log(0.8 if smokes else 0.2) + math.log(0.05 if cancer else 0.95)

    evidence = {"Smokes": [("Bob", 0.8)], "Cancer(Cid)": 0.05, "Smokes(Ann)": False}
    expected = enumerated(SMOKERS, UNUSED | {("Smokes", "Ann"): False}, likelihood)

    assert_answers(SMOKERS, expected, evidence)


MARKOV = """
time = {0, ..., 3}
weather = {Sun, Cloud, Rain}
sign = {Dry, Wet}
Weather(time, weather!)
Sign(time, sign!)
{Sun: 0.5, Rain: -0.25, *: 0}  Weather("0", +w)
{(Sun, Sun): 1.2, (Cloud, Rain): 0.8, (Rain, Sun): -2, *: 0.1}  Weather(t, +v) ^ Weather(t+1, +w)
{(Sun, Dry): 2, (Rain, Wet): 1.5, *: 0}  Weather(t, +w) ^ Sign(t, +s)
"""


def seen(time: int, sign: str, model: Model) -> SlowWorld:
    return {("Sign", str(time), other): other == sign for other in constants_of(model)["sign"]}


def test_a_hidden_markov_model_has_the_answers_of_enumeration():
    assert_answers(MARKOV, enumerated(MARKOV))


def test_a_hidden_markov_model_with_signs_and_excluded_states():
    model = parse(MARKOV)
    signs = seen(0, "Wet", model) | seen(2, "Dry", model)
    evidence = {
        "Sign": [("0", "Wet"), (2, "Dry")],
        "Weather": [(1, "Sun", False), (3, "Sun", False), (3, "Rain", False)],
    }

    def likelihood(world: SlowWorld) -> float:
        broken = world["Weather", "1", "Sun"] or not world["Weather", "3", "Cloud"]
        return -math.inf if broken else 0.0

    assert_answers(MARKOV, enumerated(MARKOV, signs, likelihood), evidence)


def test_a_chain_with_given_probabilities_and_its_weights():
    """The formulas of docs/language.md, away from both ends of the chain."""
    declared = "week = {0, ..., 4}\nSlump(week)\n"
    exact = ground(
        parse(
            declared
            + "log(0.06 + 0.8*Slump(t)) * Slump(t+1) + log(0.94 - 0.8*Slump(t)) * !Slump(t+1)"
        )
    )
    move = np.array([[0.94, 0.06], [0.14, 0.86]])
    alike = 0.5 * math.log(move[0, 0] * move[1, 1] / (move[0, 1] * move[1, 0]))
    alone = math.log(move[1, 1] / move[0, 0])
    weighted = ground(parse(f"{declared}{alike!r}  Slump(t) <=> Slump(t+1)\n{alone!r}  Slump(t)"))

    for first, last in ((False, True), (True, True), (True, False), (False, False)):
        ends = {"Slump(0)": first, "Slump(4)": last}
        one, other = infer(exact.observe(ends), Exact()), infer(weighted.observe(ends), Exact())
        two_weeks = move @ move
        middle = two_weeks[int(first)] * two_weeks[:, int(last)]

        assert one.marginal("Slump(2)").probs == pytest.approx(middle / middle.sum(), abs=1e-12)
        assert one.log_partition.value == pytest.approx(math.log(middle.sum()), abs=1e-12)
        for week in (1, 2, 3):
            probs = one.marginal(f"Slump({week})").probs
            assert other.marginal(f"Slump({week})").probs == pytest.approx(probs, abs=1e-12)


MIXED = """
place = {Oslo, Rome}
Warm(place)
Near: boolean
heat(place): real
drift: real
0.4   Warm(p)
-0.3  Near
0.2   heat(p)^2 * -1
0.5   Warm(p) * (heat(p) = 4) + !Warm(p) * (heat(p) = -1)
0.7   Near * (heat(Oslo) = heat(Rome) + drift)
normal(drift | 0.5*Near, 1 + 2*Near)
gaussian(heat(p), drift; mean=[1, 0], cov=[[3, 1], [1, 2]])
"""


def test_reals_and_booleans_have_the_answers_of_enumeration():
    assert_answers(MIXED, enumerated(MIXED))


def test_reals_that_are_observed_or_measured():
    def likelihood(world: SlowWorld) -> float:
        measured = stats.norm.logpdf(3.5, world["heat", "Rome"], 0.5)
        return float(measured + math.log(0.3 if world["Warm", "Oslo"] else 0.7))

    evidence = [
        {"heat": [("Rome", 3.5, 0.5)], "Warm(Oslo)": 0.3},
        {"drift": 0.25},
    ]
    expected = enumerated(MIXED, {("drift",): 0.25}, likelihood)

    assert_answers(MIXED, expected, evidence)


def test_an_error_is_a_variance_in_python_and_a_deviation_in_tables():
    one = infer(ground(parse(MIXED), {"heat(Rome)": Soft(3.5, 0.25)}))
    other = infer(ground(parse(MIXED), {"heat": [("Rome", 3.5, 0.5)]}))

    assert one.log_partition.value == other.log_partition.value


def test_a_closed_condition_and_a_closed_factor_of_reals():
    text = MIXED + "Linked(place, place)\n0.3 (heat(p) = heat(q)) where Linked(p, q)\n"
    text += "0.9 Linked(p, q) => Warm(q)\n0.1 1 + !Linked(p, q) * heat(p) * 0.5\n"
    observed: SlowWorld = {
        ("Linked", a, b): (a, b) == ("Rome", "Oslo")
        for a in ("Oslo", "Rome")
        for b in ("Oslo", "Rome")
    }

    expected = enumerated(text, observed)

    assert_answers(text, expected, {"Linked": [("Rome", "Oslo")]}, closed=("Linked",))
