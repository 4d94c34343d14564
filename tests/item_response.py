"""Answers of persons to items whose slopes are hidden, and a long chain that draws from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import hylift as hl

Floats = NDArray[np.float64]

MODEL = """
Correct(person, item)
ability(person): real
difficulty(item): real
slope(item): real
normal(ability(p) | 0, 1)
normal(difficulty(i) | 0, 1)
normal(slope(i) | 1, 0.25)
Correct(p, i) * (slope(i) * (ability(p) - difficulty(i)) > 0)
!Correct(p, i) * (slope(i) * (ability(p) - difficulty(i)) < 0)
"""
"""log sigmoid(slope * (ability - difficulty)) of each right answer, and of minus that of others."""


@dataclass(frozen=True, slots=True, eq=False)
class ItemResponse:
    """Right and wrong answers."""

    correct: NDArray[np.bool_]  # (person, item)

    @classmethod
    def drawn(cls, num_persons: int, num_items: int, seed: int = 0) -> ItemResponse:
        rng = np.random.default_rng(seed)
        ability, difficulty = rng.normal(size=num_persons), rng.normal(size=num_items)
        slope = np.exp(0.3 * rng.normal(size=num_items))
        chance = 1 / (1 + np.exp(-slope * (ability[:, None] - difficulty)))
        return cls(rng.random(chance.shape) < chance)

    def graph(self) -> hl.FactorGraph:
        answers = np.ndenumerate(self.correct)
        return hl.ground(
            hl.parse(MODEL), {f"Correct(p{p},i{i})": bool(said) for (p, i), said in answers}
        )

    @property
    def names(self) -> list[str]:
        persons, items = (range(size) for size in self.correct.shape)
        return [
            *(f"ability(p{p})" for p in persons),
            *(f"difficulty(i{i})" for i in items),
            *(f"slope(i{i})" for i in items),
        ]

    def moments(self, posterior: hl.Posterior) -> tuple[Floats, Floats]:
        """Means and standard deviations of all reals, in the order of their names."""
        found = [posterior.marginal(name) for name in self.names]
        return np.array([m.mean for m in found]), np.array([m.std for m in found])

    def log_density(self, x: Floats) -> tuple[float, Floats]:
        """Of all reals in the order of their names, with its gradient."""
        persons, items = self.correct.shape
        ability, difficulty, slope = np.split(x, [persons, persons + items])
        away, sign = ability[:, None] - difficulty, np.where(self.correct, 1.0, -1.0)
        reach = sign * slope * away
        value = -np.logaddexp(0.0, -reach).sum() - 0.5 * (ability @ ability)
        value -= 0.5 * (difficulty @ difficulty) + 2 * ((slope - 1) ** 2).sum()
        pull = sign / (1 + np.exp(reach))
        gradient = [
            (pull * slope).sum(axis=1) - ability,
            -slope * pull.sum(axis=0) - difficulty,
            (pull * away).sum(axis=0) - 4 * (slope - 1),
        ]
        return float(value), np.concatenate(gradient)

    def chain(self, mean: Floats, std: Floats, num_draws: int, seed: int = 1) -> Floats:
        """(draw, real): by Hamiltonian Monte Carlo, from a mean and in units of deviations."""
        rng, x, draws = np.random.default_rng(seed), mean, np.empty((num_draws, len(mean)))
        value, slope = self.log_density(x)
        for draw in range(-num_draws // 10, num_draws):
            move, start = rng.normal(size=len(x)), (x, value, slope)
            before, step = value - 0.5 * (move @ move), rng.uniform(0.2, 0.3) * std
            for _ in range(rng.integers(5, 12)):
                move = move + 0.5 * step * slope
                x = x + step * move
                value, slope = self.log_density(x)
                move = move + 0.5 * step * slope
            if np.log(rng.random()) >= value - 0.5 * (move @ move) - before:
                x, value, slope = start
            if draw >= 0:
                draws[draw] = x
        return draws
