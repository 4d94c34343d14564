"""Draws of the variables of functions: for all chains at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.archive import Arrays
from hylift.graph import FactorGroup
from hylift.inference.held import (
    WIDEST,
    Held,
    State,
    fill,
    generator_state,
    part_of,
    prefixed,
    restore_generator,
)
from hylift.inference.local.functions import Part, colors
from hylift.inference.local.kernels import gradient_of_each
from hylift.inference.local.terms import LocalTerms
from hylift.inference.sampling.kernels.sweep import FUNCTIONS, weigh_states
from hylift.inference.sampling.lines import (
    MOST_CORRELATED,
    MOST_LINES,
    FloatArray,
    Ids,
    Lines,
    Mirrors,
    components,
    correlated_lines,
    of_same_functions,
    stored_lines,
)
from hylift.inference.sampling.state import STALE, Chain, RealBlocks
from hylift.numerics.segments import inverse
from hylift.rewrite.kinds import Kinds

Discrete = tuple[Ids, list[Part]]

WIDE, RATE = 6.0, 0.1
"""Width of the interval in which a slice is sought, in mean lengths of a move; and the share of
that average that a move has."""

MOST_WIDER, MOST_TRIES = 100, 200
"""Times that an interval is widened while warming up, and that it is shrunk."""

FAR = 1e25
"""A real that gets so far is held by nothing."""

MIRRORED = 0.25
"""Share of the sweeps in which signs change."""

PER_SWEEP, PER_SLOT = 500_000, 400
"""Nanoseconds of a chain's sweep, and of each slot of a function."""


@dataclass(slots=True, eq=False)
class FunctionDraws:
    """The variables of functions: sets of which no two share a factor, drawn in random order.

    A discrete variable is drawn from its probabilities given all else, a real by a slice: a height
    under its density, then a place where the density is at least as high, within an interval that
    is as wide as warming up has shown (Neal, Annals of Statistics 31:705, 2003). Reals that were
    seen to vary together while warming up also move together.
    """

    terms: LocalTerms
    functions: list[FactorGroup]
    given: NDArray[np.bool_]  # (variable,): reals of functions
    near: NDArray[np.bool_]  # (component of reals,): next to variables of functions
    component: Ids  # (real of functions,)
    alike: Ids  # (real of functions,): the least of those in the same functions
    color: Ids  # (real of functions,): sets of these that share no factor
    rng: np.random.Generator
    power: FloatArray  # (variable,): to which the functions of a variable are raised
    singles: list[tuple[Discrete | None, Lines | None]] = field(default_factory=list)
    """Discrete variables and reals of each set."""
    mirrors: list[Mirrors] = field(default_factory=list)
    together: list[Lines] = field(default_factory=list)
    counts_broken: bool = False
    """True if functions count as -1 where they are -inf, and as 0 elsewhere."""

    @classmethod
    def of(
        cls, kinds: Kinds, terms: LocalTerms, blocks: RealBlocks, seed: np.random.SeedSequence
    ) -> FunctionDraws:
        is_fixed = terms.variable["movable"] == 0
        slot_term = terms.entry_term()
        touched = np.unique(slot_term[is_fixed[terms.entry["variable"]]])
        near = np.zeros(blocks.num_components, dtype=bool)
        near[blocks.of_term[touched][blocks.of_term[touched] >= 0]] = True
        given = is_fixed & (terms.variable["num_states"] == 0)
        rng = np.random.default_rng(seed)
        component = components(kinds.functions, terms, given)
        alike = of_same_functions(kinds.functions, np.flatnonzero(given), len(given))
        of_alike = colors(kinds.functions, terms, alike)[given]
        own = cls(
            terms, kinds.functions, given, near, component, alike[given], of_alike, rng,
            np.ones(len(given)),
        )  # fmt: skip
        color = colors(kinds.functions, terms)
        for number in range(int(color.max()) + 1):
            own.singles.append(own._single(np.flatnonzero(color == number)))
        own.mirrors = own._mirrors()
        return own

    def _mirrors(self) -> list[Mirrors]:
        """Components of reals, and, in sets that share no factor, reals of the same functions."""
        record, functions, size = self.terms.variable, self.functions, len(self.given)
        is_even = (record["lower"] == -record["upper"])[self.given]
        reals = np.flatnonzero(self.given)[is_even]
        if not len(reals):
            return []
        whole, near, color = (part[is_even] for part in (self.component, self.alike, self.color))
        found = [Mirrors.of(functions, reals, whole, size)]
        if len(np.unique(near)) > len(np.unique(whole)):
            for number in np.unique(color):
                own = color == number
                found.append(Mirrors.of(functions, reals[own], near[own], size))
        return found

    def _lines(self, variables: Ids, direction: FloatArray, block: Ids, number: Ids) -> Lines:
        """number: (variable,), the block of all reals of blocks, moving or not, or -1."""
        record, width = self.terms.variable[variables], np.ones(int(block.max()) + 1)
        bounds = np.stack([record["lower"], record["upper"]])
        parts = Part.each(self.functions, number)
        return Lines(variables, direction, block, parts, width, bounds)

    def _single(self, variables: Ids) -> tuple[Discrete | None, Lines | None]:
        """The discrete variables of a set, and its reals, each by itself."""
        is_real, discrete, lines = self.given[variables], None, None
        states, reals = variables[~is_real], variables[is_real]
        if len(states):
            discrete = states, Part.each(self.functions, inverse(states, len(self.given)))
        if len(reals):
            block = np.arange(len(reals))
            lines = self._lines(reals, np.ones(len(reals)), block, inverse(reals, len(self.given)))
            closed = np.isfinite(lines.bounds).all(axis=0)
            lines.width[closed] = (lines.bounds[1] - lines.bounds[0])[closed]
        return discrete, lines

    def sweep(self, chains: list[Chain], probs: list[FloatArray], *, is_warm: bool) -> int:
        """Draw all variables of functions once; returns one that nothing holds, or -1.

        probs: per chain, the sums of probabilities of states that they are added to.
        """
        x = np.stack([chain.x for chain in chains])
        joint = np.stack([chain.joint for chain in chains])
        self.draw(x, joint, probs, widens=not is_warm, rate=0.0 if is_warm else RATE)
        if self.rng.random() < MIRRORED:
            for mirrors in self.mirrors:
                self._mirror(x, joint, mirrors)
        total = self.totals(x)
        for number, (chain, values) in enumerate(zip(chains, x, strict=True)):
            chain.x[:], chain.joint[:] = values, joint[number]
            chain.origin[self.given] = values[self.given]
            chain.known[self.near] = STALE
            chain.log_density[FUNCTIONS] = total[number]
        far = np.abs(np.where(self.given, x, 0.0)).max(axis=0) > FAR
        return int(np.argmax(far)) if far.any() else -1

    def draw(
        self,
        x: FloatArray,
        joint: Ids,
        probs: Sequence[FloatArray] | None,
        *,
        widens: bool,
        rate: float,
        most_lines: int = MOST_LINES,
    ) -> None:
        """Draw all variables of functions once in x (chain, variable), with joint states (chain,
        term), and along so many of the lines on which reals move together.

        widens: intervals of slices while they are too narrow; rate: of changes of widths.
        """
        for number in self.rng.permutation(len(self.singles)).tolist():
            discrete, lines = self.singles[number]
            if discrete is not None:
                self._draw_states(x, joint, discrete, probs)
            if lines is not None:
                self._slice(x, joint, lines, widens=widens, rate=rate)
        chosen = list(range(len(self.together)))
        if most_lines < len(self.together):
            chosen = self.rng.choice(len(self.together), most_lines, replace=False).tolist()
        for number in chosen:
            self._slice(x, joint, self.together[number], widens=widens, rate=rate)

    @property
    def work(self) -> int:
        """About that of a sweep, in nanoseconds."""
        return PER_SWEEP + PER_SLOT * sum(group.scope.size for group in self.functions)

    def totals(self, x: FloatArray) -> FloatArray:
        """(chain,): log-values of all functions."""
        return self.totals_by(x, np.zeros(x.shape[1], dtype=np.int64))[:, 0]

    def totals_by(self, x: FloatArray, owner: Ids) -> FloatArray:
        """(chain, owner): log-values of all functions by the owners (variable,) of their slots."""
        parts = Part.each(self.functions, owner)
        return self._sums(x, parts, np.ones((len(x), int(owner.max(initial=-1)) + 1), dtype=bool))

    def _sums(self, x: FloatArray, parts: list[Part], active: NDArray[np.bool_]) -> FloatArray:
        """(chain, block): sums of the functions of those blocks that are active, and else 0."""
        total = np.zeros(active.shape)
        for part in parts:
            total += part.sums(x, active, breaks=self.counts_broken)
        return total

    def _draw_states(
        self, x: FloatArray, joint: Ids, some: Discrete, probs: Sequence[FloatArray] | None
    ) -> None:
        """Draw the discrete variables of a set, each from its probabilities given all else."""
        variables, parts = some
        record = self.terms.variable[variables]
        weight = np.full((len(x), len(variables), int(record["num_states"].max())), -np.inf)
        has = np.arange(weight.shape[2]) < record["num_states"][:, None]
        weigh_states(self.terms, x, joint, variables, weight)
        for part in parts:
            self._add_states(x, variables, part, weight)
        weight = special.softmax(weight, axis=2)
        reached = np.cumsum(weight, axis=2) > self.rng.random(weight.shape[:2])[..., None]
        # By rounding, nothing may be reached: then it is the last that is possible.
        last = weight.shape[2] - 1 - np.argmax(weight[..., ::-1] > 0, axis=2)
        x[:, variables] = np.where(reached.any(axis=2), np.argmax(reached, axis=2), last)
        joint[:] = self.terms.joint_states(x)
        score = (record["scores"][:, None] + np.arange(weight.shape[2]))[has]
        for own, added in zip(probs or (), weight, strict=probs is not None):
            own[score] += added[has]

    def _add_states(self, x: FloatArray, variables: Ids, part: Part, weight: FloatArray) -> None:
        """Add functions to log-weights (chain, variable, state); their blocks are the variables."""
        group, owner = part.group, part.owner
        num_states = self.terms.variable["num_states"]
        for slot in range(group.arity):
            some = np.flatnonzero(group.scope[:, slot] == variables[owner])
            if not len(some):
                continue
            slots = [x[:, group.scope[some, other], None] for other in range(group.arity)]
            slots[slot] = np.arange(num_states[variables[owner[some[0]]]])  # as many for all
            power = self.power[variables[owner[some]]][:, None]
            values = power * part.values(some[:, None], slots, breaks=self.counts_broken)
            chain, state = np.arange(len(x))[:, None, None], np.arange(values.shape[2])
            np.add.at(weight, (chain, owner[some][:, None], state), values)

    def _slice(self, x: FloatArray, joint: Ids, lines: Lines, *, widens: bool, rate: float) -> None:
        """Move every block along its line, in all chains, and change its width at a rate."""
        shape, origin = (len(x), len(lines.width)), x[:, lines.variables].copy()
        curve, slope = self._along(x, joint, lines)
        power = np.empty(len(lines.width))
        power[lines.block] = self.power[lines.variables]
        low, high = lines.reach(origin)

        def value(t: FloatArray, active: NDArray[np.bool_]) -> FloatArray:
            moved = origin + t[:, lines.block] * lines.direction
            x[:, lines.variables] = np.clip(moved, *lines.bounds)
            return power * self._sums(x, lines.parts, active) + t * (curve * t + slope)

        everywhere = np.ones(shape, dtype=bool)
        height = value(np.zeros(shape), everywhere) - self.rng.exponential(size=shape)
        left = -lines.width * self.rng.random(shape)
        right = left + lines.width
        if widens:
            for end, sign in ((left, -1.0), (right, 1.0)):
                active, step = everywhere.copy(), np.broadcast_to(lines.width, shape).copy()
                for _ in range(MOST_WIDER):
                    active &= (end > low) & (end < high)
                    active &= value(np.clip(end, low, high), active) >= height
                    if not active.any():
                        break
                    end[active] += sign * step[active]
                    step[active] *= 2.0
        left, right = np.maximum(left, low), np.minimum(right, high)
        chosen, active = np.zeros(shape), everywhere
        for _ in range(MOST_TRIES):
            t = np.where(active, left + self.rng.random(shape) * (right - left), chosen)
            is_taken = active & (value(t, active) >= height)
            chosen[is_taken] = t[is_taken]
            active = active & ~is_taken
            if not active.any():
                break
            left = np.where(active & (t < 0.0), t, left)
            right = np.where(active & (t >= 0.0), t, right)
        moved = origin + chosen[:, lines.block] * lines.direction
        x[:, lines.variables] = np.clip(moved, *lines.bounds)
        if rate > 0.0:
            length = np.abs(chosen).mean(axis=0)
            lines.width[:] += rate * (WIDE * length - lines.width)
            np.maximum(lines.width, np.finfo(float).tiny, out=lines.width)

    def _mirror(self, x: FloatArray, joint: Ids, mirrors: Mirrors) -> None:
        """Change the signs of each block in x (chain, variable), by Metropolis' rule."""
        variables, moved = mirrors.variables, x.copy()
        moved[:, variables] *= -1.0
        everywhere = np.ones((len(x), int(mirrors.block.max()) + 1), dtype=bool)
        here, there = np.empty((2, len(x), len(variables)))
        gradient_of_each(self.terms, x, joint, variables, here)
        gradient_of_each(self.terms, moved, joint, variables, there)
        # The mean slope times the way is the rise of a quadratic.
        rise = _by_block(-(here + there) * x[:, variables], mirrors.block)
        rise += self._sums(moved, mirrors.parts, everywhere)
        rise -= self._sums(x, mirrors.parts, everywhere)
        is_taken = -self.rng.exponential(size=rise.shape) < rise
        x[:, variables] = np.where(is_taken[:, mirrors.block], moved[:, variables], x[:, variables])

    def _along(self, x: FloatArray, joint: Ids, lines: Lines) -> tuple[FloatArray, FloatArray]:
        """(chain, block): the quadratics along the lines are curve t² + slope t and a constant."""
        here, there = (np.empty((len(x), len(lines.variables))) for _ in range(2))
        gradient_of_each(self.terms, x, joint, lines.variables, here)
        moved = x.copy()
        moved[:, lines.variables] += lines.direction
        gradient_of_each(self.terms, moved, joint, lines.variables, there)
        return (
            _by_block(0.5 * lines.direction * (there - here), lines.block),
            _by_block(lines.direction * here, lines.block),
        )

    def learn(self, values: FloatArray) -> None:
        """Find directions in which reals vary together in values (draw, variable)."""
        variables, label = np.flatnonzero(self.given), self._labels()
        self.together = []
        if len(values) < 2 or not len(variables):
            return
        color = np.where(label < len(self.given), self.color, -1)  # components share no factor
        for number in np.unique(color):
            own = color == number
            lines = correlated_lines(values, variables[own], label[own])
            self.together += [self._joined(*some, label) for some in lines]

    def _labels(self) -> Ids:
        """(real of functions,): the block in which it moves with others: its component, counted
        after all variables, or, where that is large, those in the same functions."""
        size = np.bincount(self.component, minlength=1)[self.component]
        return np.where(size <= MOST_CORRELATED, len(self.given) + self.component, self.alike)

    def _joined(self, reals: Ids, along: FloatArray, block: Ids, label: Ids) -> Lines:
        """Lines of several blocks at once; reals, along, block: (real of a line,)."""
        variables = np.flatnonzero(self.given)
        number = np.full(int(label.max()) + 1, -1)
        number[label[np.searchsorted(variables, reals)]] = block
        block_of = np.full(len(self.given), -1)
        block_of[variables] = number[label]
        return self._lines(reals, along, block, block_of)

    def arrays(self) -> State:
        """All that the next sweep depends on."""
        widths = {
            f"width {number}": Held(lines.width, 0.0, WIDEST)
            for number, (_, lines) in enumerate(self.singles)
            if lines is not None
        }
        found: State = {"rng": generator_state(self.rng), **widths}
        for number, lines in enumerate(self.together):
            found = {**found, **prefixed(f"line {number}", lines.arrays())}
        return found

    def restore(self, arrays: Arrays) -> None:
        self.together = []
        fill(self.arrays(), arrays)
        restore_generator(self.rng, arrays["rng"])
        label = self._labels()
        while own := part_of(f"line {len(self.together)}", arrays):
            reals, along, block, width = stored_lines(own, np.flatnonzero(self.given), label)
            self.together.append(replace(self._joined(reals, along, block, label), width=width))


def _by_block(values: FloatArray, block: Ids) -> FloatArray:
    """(chain, block): sums of values (chain, variable) by their blocks."""
    count = int(block.max()) + 1
    place = np.arange(len(values))[:, None] * count + block
    total = np.bincount(place.ravel(), values.ravel(), len(values) * count)
    return np.asarray(total, dtype=np.float64).reshape(len(values), count)
