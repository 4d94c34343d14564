"""Draws of the variables of functions, which are evaluated in Python: for all chains at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.graph import FactorGroup
from hylift.inference.local.kernels import gradient_of_each
from hylift.inference.local.terms import LocalTerms
from hylift.inference.loop import generator_state, restore_generator
from hylift.inference.sampling.kernels.sweep import FUNCTIONS, weigh_states
from hylift.inference.sampling.state import STALE, Chain, RealBlocks
from hylift.inference.search.functions import FunctionSet, function_sets
from hylift.numerics.sparse import connected
from hylift.rewrite.kinds import Kinds

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]
Parts = Sequence[tuple[FactorGroup, Ids]]
Discrete = tuple[Ids, Parts]

WIDE, RATE = 6.0, 0.1
"""Width of the interval in which a slice is sought, in mean lengths of a move; and the share of
that average that a move has."""

MOST_WIDER, MOST_TRIES = 100, 200
"""Times that an interval is widened while warming up, and that it is shrunk."""

FAR = 1e25
"""A real that gets so far is held by nothing."""

MOST_LINES, MOST_CORRELATED, LEAST_EXCESS = 8, 256, 1.5
"""Directions of a component in which reals move together, reals of such a component, and variance
along a direction, relative to that of independent reals, from which it is worth a move."""


PER_SWEEP, PER_SLOT = 500_000, 400
"""Nanoseconds of a chain's sweep, and of each slot of a function."""


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Directions in which reals move by a slice, one in each of several blocks; blocks share no
    factor."""

    variables: Ids
    direction: FloatArray  # (variable,)
    block: Ids  # (variable,)
    parts: Parts  # functions of the blocks, and per factor its block
    width: FloatArray  # (block,)
    bounds: FloatArray  # (2, variable)


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
    singles: list[tuple[Discrete | None, Lines | None]]  # discrete variables and reals of each set
    given: NDArray[np.bool_]  # (variable,): reals of functions
    near: NDArray[np.bool_]  # (component of reals,): next to variables of functions
    rng: np.random.Generator
    power: FloatArray  # (variable,): to which the functions of a variable are raised
    together: list[Lines] = field(default_factory=list)
    counts_broken: bool = False
    """True if functions count as -1 where they are -inf, and as 0 elsewhere."""

    @classmethod
    def of(
        cls, kinds: Kinds, terms: LocalTerms, blocks: RealBlocks, seed: np.random.SeedSequence
    ) -> FunctionDraws:
        is_fixed = terms.variable["movable"] == 0
        slot_term = np.repeat(np.arange(len(terms.term)), terms.term["last"] - terms.term["first"])
        touched = np.unique(slot_term[is_fixed[terms.entry["variable"]]])
        near = np.zeros(blocks.num_components, dtype=bool)
        near[blocks.of_term[touched][blocks.of_term[touched] >= 0]] = True
        given = is_fixed & (terms.variable["num_states"] == 0)
        rng = np.random.default_rng(seed)
        own = cls(terms, kinds.functions, [], given, near, rng, np.ones(len(given)))
        own.singles = [own._single(some) for some in function_sets(kinds, terms)]
        return own

    def _lines(self, variables: Ids, direction: FloatArray, block: Ids, parts: Parts) -> Lines:
        record = self.terms.variable[variables]
        width = np.ones(int(block.max()) + 1)
        return Lines(
            variables, direction, block, parts, width, np.stack([record["lower"], record["upper"]])
        )

    def _single(self, some: FunctionSet) -> tuple[Discrete | None, Lines | None]:
        """The discrete variables of a set, and its reals, each by itself."""
        is_real, discrete = self.given[some.variables], None
        if not is_real.all():
            place = np.where(is_real, -1, np.cumsum(~is_real) - 1)
            discrete = some.variables[~is_real], _of_block(some, place)
        if not is_real.any():
            return discrete, None
        place = np.where(is_real, np.cumsum(is_real) - 1, -1)
        own = some.variables[is_real]
        lines = self._lines(own, np.ones(len(own)), np.arange(len(own)), _of_block(some, place))
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
        parts = [(group, np.zeros(len(group), dtype=np.int64)) for group in self.functions]
        return self._sums(x, parts, np.ones((len(x), 1), dtype=bool))[:, 0]

    def totals_by(self, x: FloatArray, owner: Ids) -> FloatArray:
        """(chain, owner): log-values of all functions by the owners (variable,) of their slots."""
        parts = [(group, owner[group.scope[:, 0]]) for group in self.functions]
        return self._sums(x, parts, np.ones((len(x), int(owner.max(initial=-1)) + 1), dtype=bool))

    def _sums(self, x: FloatArray, parts: Parts, active: NDArray[np.bool_]) -> FloatArray:
        """(chain, block): sums of the functions of those blocks that are active, and else 0."""
        num_chains, num_blocks = active.shape
        total = np.zeros(num_chains * num_blocks)
        for group, owner in parts:
            chain, factor = np.nonzero(active[:, owner])
            slots = [x[chain, group.scope[factor, slot]] for slot in range(group.arity)]
            values = self._values(group, factor, slots)
            total += np.bincount(chain * num_blocks + owner[factor], values, len(total))
        return total.reshape(active.shape)

    def _values(self, group: FactorGroup, factor: Ids, slots: list[NDArray[Any]]) -> FloatArray:
        """Log-values of some factors of a group, as they count."""
        values = group.potential.log_value(group.row[factor], slots)
        if self.counts_broken:
            return np.where(np.isneginf(values), -1.0, 0.0)
        return values * group.multiplicity[factor]

    def _draw_states(
        self, x: FloatArray, joint: Ids, some: Discrete, probs: Sequence[FloatArray] | None
    ) -> None:
        """Draw the discrete variables of a set, each from its probabilities given all else."""
        variables, parts = some
        record = self.terms.variable[variables]
        weight = np.full((len(x), len(variables), int(record["num_states"].max())), -np.inf)
        has = np.arange(weight.shape[2]) < record["num_states"][:, None]
        weigh_states(self.terms, x, joint, variables, weight)
        for group, owner in parts:
            self._add_states(x, variables, group, owner, weight)
        weight = np.exp(weight - weight.max(axis=2, keepdims=True))
        weight /= weight.sum(axis=2, keepdims=True)
        reached = np.cumsum(weight, axis=2) > self.rng.random(weight.shape[:2])[..., None]
        # By rounding, nothing may be reached: then it is the last that is possible.
        last = weight.shape[2] - 1 - np.argmax(weight[..., ::-1] > 0, axis=2)
        x[:, variables] = np.where(reached.any(axis=2), np.argmax(reached, axis=2), last)
        joint[:] = self.terms.joint_states(x)
        score = (record["scores"][:, None] + np.arange(weight.shape[2]))[has]
        for own, added in zip(probs or (), weight, strict=probs is not None):
            own[score] += added[has]

    def _add_states(
        self, x: FloatArray, variables: Ids, group: FactorGroup, owner: Ids, weight: FloatArray
    ) -> None:
        """Add functions to log-weights (chain, variable, state); owner: (factor,), its variable."""
        num_states = self.terms.variable["num_states"]
        for slot in range(group.arity):
            some = np.flatnonzero(group.scope[:, slot] == variables[owner])
            if not len(some):
                continue
            slots = [x[:, group.scope[some, other], None] for other in range(group.arity)]
            slots[slot] = np.arange(num_states[variables[owner[some[0]]]])  # as many for all
            power = self.power[variables[owner[some]]][:, None]
            values = power * self._values(group, some[:, None], slots)
            chain, state = np.arange(len(x))[:, None, None], np.arange(values.shape[2])
            np.add.at(weight, (chain, owner[some][:, None], state), values)

    def _slice(self, x: FloatArray, joint: Ids, lines: Lines, *, widens: bool, rate: float) -> None:
        """Move every block along its line, in all chains, and change its width at a rate."""
        shape, origin = (len(x), len(lines.width)), x[:, lines.variables].copy()
        curve, slope = self._along(x, joint, lines)
        power = np.empty(len(lines.width))
        power[lines.block] = self.power[lines.variables]
        low, high = _reach(origin, lines, shape)

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

    def _along(self, x: FloatArray, joint: Ids, lines: Lines) -> tuple[FloatArray, FloatArray]:
        """(chain, block): the quadratics along the lines are curve t² + slope t and a constant."""
        here, there = (np.empty((len(x), len(lines.variables))) for _ in range(2))
        gradient_of_each(self.terms, x, joint, lines.variables, here)
        moved = x.copy()
        moved[:, lines.variables] += lines.direction
        gradient_of_each(self.terms, moved, joint, lines.variables, there)
        start = np.arange(len(x))[:, None] * len(lines.width) + lines.block
        curve, slope = (
            np.bincount(start.ravel(), (lines.direction * part).ravel(), len(x) * len(lines.width))
            for part in (0.5 * (there - here), here)
        )
        shape = len(x), len(lines.width)
        return np.asarray(curve.reshape(shape), float), np.asarray(slope.reshape(shape), float)

    def learn(self, values: FloatArray) -> None:
        """Find directions in which reals vary together in values (draw, variable)."""
        variables = np.flatnonzero(self.given)
        if len(values) < 2 or not len(variables):
            return
        component = self._components(variables)
        sizes = np.bincount(component)
        order = np.argsort(component, kind="stable")
        found: list[list[tuple[Ids, FloatArray]]] = [[] for _ in range(MOST_LINES)]
        for size in np.unique(sizes[(sizes > 1) & (sizes <= MOST_CORRELATED)]).tolist():
            inside = order[sizes[component[order]] == size]
            members = variables[inside].reshape(-1, size)
            for number, directions in enumerate(_correlated(values, members)):
                found[number].append(directions)
        self.together = []
        for some in found:
            counts = np.concatenate([np.zeros(0, int), *(np.full(*m.shape) for m, _ in some)])
            block = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
            if len(block):
                reals = np.concatenate([members.ravel() for members, _ in some])
                along = np.concatenate([directions.ravel() for _, directions in some])
                self.together.append(self._joined(reals, along, block, variables, component))

    def _components(self, variables: Ids) -> Ids:
        """(real,): its component among the reals of functions."""
        place = np.full(len(self.given), -1)
        place[variables] = np.arange(len(variables))
        pairs = []
        scopes: list[NDArray[Any]] = [group.scope for group in self.functions]
        scopes += [self.terms.reals(rows) for rows in self.terms.rows() if rows.num_reals > 1]
        for scope in scopes:
            inside = np.where(self.given[scope], place[scope], -1)
            first = inside.max(axis=1)
            for slot in range(scope.shape[1]):
                both = np.stack([first, inside[:, slot]], axis=1)
                pairs.append(both[(both >= 0).all(axis=1)])
        return connected(len(variables), np.concatenate(pairs).astype(np.int32)).astype(np.int64)

    def _joined(
        self, reals: Ids, along: FloatArray, block: Ids, variables: Ids, component: Ids
    ) -> Lines:
        """Lines of several components at once; reals, along, block: (real of a line,)."""
        number = np.full(int(component.max()) + 1, -1)
        number[component[np.searchsorted(variables, reals)]] = block
        block_of = np.full(len(self.given), -1)
        block_of[variables] = number[component]
        parts = []
        for group in self.functions:
            owner = block_of[group.scope].max(axis=1)
            some = np.flatnonzero(owner >= 0)
            if len(some):
                parts.append((group.take(some), owner[some]))
        return self._lines(reals, along, block, parts)

    def arrays(self) -> Arrays:
        """All that the next sweep depends on."""
        found: Arrays = {"rng": generator_state(self.rng)}
        for number, (_, lines) in enumerate(self.singles):
            if lines is not None:
                found[f"width {number}"] = lines.width
        for number, lines in enumerate(self.together):
            found |= {
                f"line {number} {name}": getattr(lines, name)
                for name in ("variables", "direction", "block", "width")
            }
        return found

    def restore(self, arrays: Arrays) -> None:
        restore_generator(self.rng, arrays["rng"])
        for number, (_, lines) in enumerate(self.singles):
            if lines is not None:
                lines.width[:] = arrays[f"width {number}"]
        self.together = []
        variables = np.flatnonzero(self.given)
        component = self._components(variables)
        while f"line {len(self.together)} width" in arrays:
            name = f"line {len(self.together)}"
            reals, along, block, width = (
                arrays[f"{name} {part}"] for part in ("variables", "direction", "block", "width")
            )
            lines = self._joined(reals, along, block, variables, component)
            self.together.append(replace(lines, width=width.copy()))


def _of_block(some: FunctionSet, place: Ids) -> Parts:
    """The functions of those variables of a set that have a place, which is their block."""
    found = []
    for group, owner in some.groups:
        inside = np.flatnonzero(place[owner] >= 0)
        if len(inside):
            found.append((group.take(inside), place[owner[inside]]))
    return found


def _reach(
    origin: FloatArray, lines: Lines, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """(chain, block): how far each may go along its line, down and up, within bounds."""
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    still = lines.direction == 0.0
    ends = (lines.bounds[:, None] - origin) / np.where(still, 1.0, lines.direction)
    ends = np.where(still, np.array([-np.inf, np.inf])[:, None, None], ends)
    chain = np.arange(len(origin))[:, None]
    np.maximum.at(low, (chain, lines.block), np.minimum(ends.min(axis=0), 0.0))
    np.minimum.at(high, (chain, lines.block), np.maximum(ends.max(axis=0), 0.0))
    return low, high


def _correlated(values: FloatArray, members: Ids) -> Iterator[tuple[Ids, FloatArray]]:
    """Reals and directions in which they vary together more than they would alone: the first of
    each component, the second, … members: (component, real)."""
    apart = values[:, members] - values[:, members].mean(axis=0)  # (draw, component, real)
    sd = np.sqrt(np.mean(apart**2, axis=0))
    sd = np.where(sd > 0, sd, 1.0)
    apart = np.moveaxis(apart / sd, 0, 2)
    excess, vectors = np.linalg.eigh(apart @ np.moveaxis(apart, 1, 2) / len(values))
    for number in range(1, min(MOST_LINES, members.shape[1]) + 1):
        some = np.flatnonzero(excess[:, -number] > LEAST_EXCESS)
        along = vectors[some, :, -number] * sd[some]
        yield members[some], along * np.sqrt(excess[some, -number])[:, None]
