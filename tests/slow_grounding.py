"""Ground models beside the slow evaluator, which knows nothing of grounding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hylift.graph import FactorGraph
from hylift.grounding import Grounding, World, ground_world
from hylift.language import parse
from slow import Evaluator


def assignment(graph: FactorGraph, seed: int) -> np.ndarray:
    """A random state or value of every variable."""
    rng = np.random.default_rng(seed)
    num_states = graph.variables.num_states
    states = np.floor(rng.random(len(num_states)) * np.maximum(num_states, 1))
    return np.where(num_states > 0, states, rng.normal(size=len(num_states)))


def world_of(model, constants, graph, values, closed):
    """The value of every ground atom, for the slow evaluator."""
    rng = np.random.default_rng(7)
    world = dict(closed)
    named = dict(zip(graph.variables.names.render().to_pylist(), values, strict=True))
    for predicate in model.predicates:
        places = range(len(predicate.arguments))
        for words in itertools.product(*(constants[t] for t in predicate.arguments)):
            key = (predicate.name, *words)
            if key in world:
                continue
            kept = [words[p] for p in places if p != predicate.unique]
            name = f"{predicate.name}({','.join(kept)})" if kept else predicate.name
            if name not in named:  # then no grounding depends on it
                world[key] = bool(rng.random() < 0.5) if predicate.domain.is_discrete else 0.5
                continue
            if predicate.unique is not None:
                states = constants[predicate.arguments[predicate.unique]]
                world[key] = states[int(named[name])] == words[predicate.unique]
            elif predicate.domain.is_discrete:
                world[key] = bool(named[name])
            else:
                world[key] = float(named[name])
    return world


def closed_atoms(model, constants, true_atoms, names):
    """All atoms of the closed predicates, with their truth."""
    world = {}
    for name in names:
        predicate = model.predicate_by_name[name]
        for words in itertools.product(*(constants[t] for t in predicate.arguments)):
            world[(name, *words)] = (name, *words) in true_atoms
    return world


def agree(text, *, true_atoms=(), closed=(), seeds=3):
    """Grounds a model and compares its log-density with the slow evaluator's."""
    evidence = {f"{name}({','.join(words)})": True for name, *words in true_atoms}
    grounding = ground_world(World.of(parse(text), evidence or None, closed=closed))
    assert_same_density(grounding, set(true_atoms), seeds)
    return grounding


def assert_same_density(grounding: Grounding, true_atoms, seeds=3) -> None:
    """At random assignments; true_atoms: those of the closed predicates."""
    model, closed = grounding.world.model, grounding.world.closed
    constants = {name: c.to_pylist() for name, c in grounding.world.constants.items()}
    fixed = closed_atoms(model, constants, true_atoms, closed)
    for seed in range(seeds):
        values = assignment(grounding.graph, seed)
        atoms = world_of(model, constants, grounding.graph, values, fixed)
        expected = Evaluator(model, constants, atoms, closed).log_density()
        actual = grounding.graph.log_density(values)
        assert actual == pytest.approx(expected, rel=1e-12, abs=1e-9)
