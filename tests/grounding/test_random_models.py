"""Random models against slow evaluation, and what must not change how they are grounded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from grounding.random_rules import RandomCase, RandomRules
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph
from hylift.grounding import Grounding, World, ground_world, size_estimate
from hylift.language import parse
from hylift.language.statements import Model, Rule, TypeDeclaration
from hylift.language.syntax import Atom, Constant, Expr, Term, WeightTable
from hylift.language.text.formatter import format_model
from hylift.language.walk import atoms, rebuild
from slow import Evaluator
from slow_grounding import assignment, closed_atoms, world_of

pytestmark = pytest.mark.filterwarnings("ignore::hylift.language.report.ModelWarning")

CHUNK = 20
NUM_CHUNKS = 10
MANY = 100


def cases(chunk: int, count: int = CHUNK) -> Iterator[tuple[int, RandomCase]]:
    for seed in range(chunk * CHUNK, chunk * CHUNK + count):
        yield seed, RandomRules(seed).case()


def grounded(case: RandomCase) -> Grounding | None:
    """None where the evidence breaks a hard rule."""
    try:
        return ground_world(World.of(case.model, case.evidence(), closed=case.closed))
    except ImpossibleEvidenceError:
        return None


def slow_model(case: RandomCase, graph: FactorGraph, values: np.ndarray) -> Evaluator:
    fixed = closed_atoms(case.model, case.constants, case.true_atoms, case.closed)
    world = world_of(case.model, case.constants, graph, values, fixed)
    return Evaluator(case.model, case.constants, world)


def close_to(expected: float) -> Any:
    return pytest.approx(expected, rel=1e-11, abs=1e-9)


def assert_same_density(case: RandomCase, grounding: Grounding, seeds: int = 3) -> None:
    for seed in range(seeds):
        values = assignment(grounding.graph, seed)
        expected = slow_model(case, grounding.graph, values).log_density()
        assert grounding.graph.log_density(values) == close_to(expected)


def assert_impossible(case: RandomCase) -> None:
    """Without its hard rules the model has a graph; with them no assignment is possible."""
    soft = tuple(rule for rule in case.model.rules if not rule.hard)
    relaxed = replace(case, model=replace(case.model, rules=soft))
    assert grounded(relaxed) is not None
    for seed in range(30):
        world = random_world(case, seed)
        assert Evaluator(case.model, case.constants, world).log_density() == -np.inf


def random_world(case: RandomCase, seed: int) -> dict[tuple[str, ...], float | bool]:
    """A random value of every ground atom that is not closed."""
    rng = np.random.default_rng(seed)
    world = dict(closed_atoms(case.model, case.constants, case.true_atoms, case.closed))
    for predicate in case.model.predicates:
        if predicate.name in case.closed:
            continue
        state: dict[tuple[str, ...], str] = {}
        for words in case.atoms_of(predicate.name):
            key = (predicate.name, *words)
            if predicate.unique is not None:
                states = case.constants[predicate.arguments[predicate.unique]]
                others = words[: predicate.unique] + words[predicate.unique + 1 :]
                holds = state.setdefault(others, str(rng.choice(states)))
                world[key] = holds == words[predicate.unique]
            elif predicate.domain.is_discrete:
                world[key] = bool(rng.random() < 0.5)
            else:
                world[key] = float(rng.normal())
    return world


def assert_case_agrees(case: RandomCase) -> None:
    assert parse(format_model(case.model)) == case.model
    grounding = grounded(case)
    if grounding is None:
        assert_impossible(case)
    else:
        assert_same_density(case, grounding)


@pytest.mark.parametrize("chunk", range(NUM_CHUNKS))
def test_random_models_ground_to_the_density_of_their_rules(chunk):
    for _, case in cases(chunk):
        assert_case_agrees(case)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(NUM_CHUNKS, NUM_CHUNKS + MANY))
def test_many_random_models_ground_to_the_density_of_their_rules(chunk):
    for _, case in cases(chunk):
        assert_case_agrees(case)


def test_atoms_and_rows_too_many_to_mark_are_found_by_sorting(monkeypatch):
    monkeypatch.setattr("hylift.grounding.atoms.MAX_DENSE", 2)
    monkeypatch.setattr("hylift.grounding.factors.MAX_LOOKUP", 2)

    for _, case in cases(0):
        assert_case_agrees(case)


def test_evidence_that_breaks_a_hard_rule_by_itself_is_impossible():
    num_impossible = 0
    for _, case in cases(0, 3 * CHUNK):
        broken = [rule for rule in case.model.rules if rule.hard and is_decided(case, rule)]
        slow = Evaluator(case.model, case.constants, random_world(case, 0))
        if any(slow.value_of(rule) == -np.inf for rule in broken):
            num_impossible += 1
            assert grounded(case) is None

    assert num_impossible > 0


def is_decided(case: RandomCase, rule: Rule) -> bool:
    return all(atom.predicate in case.closed for atom in atoms(rule.formula))


# Counts.


def test_counts_of_groundings_are_those_of_enumeration():
    for _, case in cases(0, 2 * CHUNK):
        grounding = grounded(case)
        if grounding is None:
            continue
        slow = slow_model(case, grounding.graph, assignment(grounding.graph, 0))
        counted = grounding.statistics()

        expected = [len(list(slow.groundings(rule))) for rule in case.model.rules]
        assert [rule.num_groundings for rule in counted.rules] == expected
        assert counted.num_factors == grounding.graph.num_factors
        open_atoms = sum(p.num_atoms for p in counted.predicates if not p.is_closed)
        assert open_atoms == grounding.graph.num_variables
        assert counted.num_observed == counted.num_variables - open_atoms


def test_the_estimated_number_of_factors_is_exact():
    for _, case in cases(2, 2 * CHUNK):
        grounding = grounded(case)
        if grounding is None:
            continue
        estimate = size_estimate(case.model, case.evidence(), closed=case.closed)

        # Where a quantifier has no members its rule may be constant.
        has_members = any(plan.members for plan in grounding.plans)
        assert estimate.num_factors >= grounding.graph.num_factors
        assert has_members or estimate.num_factors == grounding.graph.num_factors
        assert estimate.num_variables >= grounding.graph.num_variables


# What must change nothing.


def assert_same_arrays(one: FactorGraph, other: FactorGraph) -> None:
    assert one.variables.names.render().equals(other.variables.names.render())
    assert one.log_constant == other.log_constant
    for a, b in zip(one.groups, other.groups, strict=True):
        assert a.potential.signature == b.potential.signature
        for name in ("scope", "row", "multiplicity"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_grounding_twice_gives_the_same_arrays():
    for _, case in cases(0):
        one, other = grounded(case), grounded(case)
        if one is not None and other is not None:
            assert_same_arrays(one.graph, other.graph)
            values = assignment(one.graph, 0)
            assert one.graph.log_density(values) == other.graph.log_density(values)


def renamed(case: RandomCase) -> RandomCase:
    """The case with other names for all constants, in the same order."""
    names = {
        word: f"{word[::-1]} 'of' {kind.name}, \"{word}\""
        for kind in case.model.types
        for word in kind.constants or ()
    }
    model = replace(
        case.model,
        types=tuple(
            TypeDeclaration(kind.name, tuple(names[word] for word in kind.constants or ()))
            for kind in case.model.types
        ),
        rules=tuple(renamed_rule(rule, names) for rule in case.model.rules),
    )
    true_atoms = frozenset((a, *(names[word] for word in words)) for a, *words in case.true_atoms)
    return RandomCase(model, case.closed, true_atoms)


def renamed_rule(rule: Rule, names: dict[str, str]) -> Rule:
    weight = rule.weight
    if isinstance(weight, WeightTable):
        entries = tuple((tuple(names[w] for w in key), value) for key, value in weight.entries)
        weight = replace(weight, entries=entries)
    change = partial(renamed_expression, names=names)
    where = tuple(map(change, rule.where))
    return replace(rule, formula=change(rule.formula), weight=weight, where=where)


def renamed_expression(expr: Expr, names: dict[str, str]) -> Expr:
    def term(given: Term) -> Term:
        return Constant(names[given.name]) if isinstance(given, Constant) else given

    if isinstance(expr, Term):
        return term(expr)
    if isinstance(expr, Atom):
        return replace(expr, arguments=tuple(map(term, expr.arguments)))
    return rebuild(expr, partial(renamed_expression, names=names))


def test_names_of_constants_and_the_order_of_rules_change_nothing():
    for seed, case in cases(1):
        grounding = grounded(case)
        order = np.random.default_rng(seed).permutation(len(case.model.rules))
        rules = tuple(case.model.rules[place] for place in order)
        permuted = replace(case, model=replace(case.model, rules=rules))
        for changed in (renamed(case), permuted):
            other = grounded(changed)
            assert (other is None) == (grounding is None)
            assert parse(format_model(changed.model)) == changed.model
            if grounding is not None and other is not None:
                values = assignment(grounding.graph, seed)
                expected = grounding.graph.log_density(values)
                assert other.graph.log_density(values) == close_to(expected)


# Closed worlds and evidence.


def has_closed_conditions(model: Model) -> bool:
    return any(atoms(part) for rule in model.rules for part in rule.where)


def by_name(graph: FactorGraph, values: np.ndarray) -> dict[str, float]:
    return dict(zip(graph.variables.names.render().to_pylist(), values.tolist(), strict=True))


def test_a_closed_world_is_an_open_one_with_all_of_it_observed():
    num_compared = 0
    for seed, case in cases(2, 2 * CHUNK):
        closed = grounded(case)
        if closed is None or has_closed_conditions(case.model):
            continue
        world = World.of(case.model, case.full_evidence())
        conditioned = ground_world(world).graph.condition()

        values = by_name(conditioned, assignment(conditioned, seed))
        hidden = [values[name] for name in closed.graph.variables.names.render().to_pylist()]
        expected = closed.graph.log_density(np.array(hidden, dtype=float))
        assert conditioned.log_density(np.array(list(values.values()))) == close_to(expected)
        num_compared += bool(case.closed)

    assert num_compared > CHUNK / 2


def test_conditioning_on_some_atoms_gives_the_density_of_the_rules():
    for seed, case in cases(5, 2 * CHUNK):
        grounding = grounded(case)
        if grounding is None:
            continue
        graph = grounding.graph
        values = np.clip(assignment(graph, seed), -4.9, 4.9)
        rng = np.random.default_rng(seed)
        names = graph.variables.names.render().to_pylist()
        observed = {
            name: observed_value(graph, at, float(values[at]))
            for at, name in enumerate(names)
            if rng.random() < 0.4
        }
        expected = slow_model(case, graph, values).log_density()

        evidence = [case.evidence(), observed]
        world = World.of(case.model, evidence, closed=case.closed)
        try:
            conditioned = ground_world(world).graph.condition()
        except ImpossibleEvidenceError:
            assert expected == -np.inf
            continue
        left = [at for at, name in enumerate(names) if name not in observed]
        assert conditioned.num_variables == len(left)
        assert conditioned.log_density(values[left]) == close_to(expected)


def observed_value(graph: FactorGraph, variable: int, value: float) -> object:
    states = graph.variables.domain(variable).states
    return value if states is None else states[int(value)]


# Corners that random models seldom reach.

CORNERS = {
    "conditions that contradict each other": "1 S(x) where R(x), !R(x)",
    "variables under a quantifier over nothing": "0.5 S(x) v !(EXIST t At(y, t+1))",
    "weights of variables under a quantifier over nothing": (
        "{P: 1, *: 2} S(x) ^ !(EXIST t At(+y, t+1))"
    ),
    "no groundings left to decide": "0.7 (R(x) <=> R(y)) ^ None(x)",
    "a constant without a finite value, never met": "1 log(1 - None(x))",
}


@pytest.mark.parametrize("rule", CORNERS.values(), ids=CORNERS)
def test_corners_ground_to_the_density_of_the_rules(rule):
    types = "person = {P, Q}\nonly = {T}\n"
    text = f"{types}R(person)\nNone(person)\nS(person)\nAt(person, only)\n{rule}\n"
    model = parse(text)
    case = RandomCase(model, ("R", "None"), frozenset([("R", "P")]))
    grounding = grounded(case)

    assert grounding is not None
    for states in itertools.product([0.0, 1.0], repeat=grounding.graph.num_variables):
        values = np.array(states)
        expected = slow_model(case, grounding.graph, values).log_density()
        assert grounding.graph.log_density(values) == close_to(expected)
