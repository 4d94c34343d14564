"""Through which factor each hidden real comes to life."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.errors import DivergentModelError
from hylift.graph import Variables
from hylift.inference.filtering.forms import Forms, IntArray
from hylift.inference.filtering.kernels.births import plan_births
from hylift.words import listed

NUM_LEVELS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Births:
    """For each factor that is the density of a real given older ones: which, and in what order."""

    forms: list[Forms]
    """All factors; some were taken apart, so that each has at most one real to give birth to."""
    slot: list[IntArray]
    """Per form (factor,): the slot that it gives birth to, or -1."""
    rank: IntArray
    """(variable,): its place among all births. Older ones come first among those of a step."""

    @classmethod
    def of(
        cls, forms: list[Forms], step: IntArray, variables: Variables, times: IntArray
    ) -> Births:
        """A plan for hidden variables; step (hidden variable,), times (step,)."""
        while True:
            birth, order = _planned(forms, step)
            if len(order) == len(step):
                break
            looser = _taken_apart(forms, step, birth)
            if looser is None:
                raise _not_held(forms, step, birth, variables, times)
            forms = looser
        rank = np.empty(len(step), dtype=np.int64)
        rank[order] = np.arange(len(order))
        slots, begin = [], 0
        for form in forms:
            entry = begin + np.arange(form.scope.size).reshape(form.scope.shape)
            chosen = birth[form.scope] == entry
            slots.append(np.where(chosen.any(axis=1), np.argmax(chosen, axis=1), -1))
            begin += form.scope.size
        return cls(forms, slots, rank)

    @property
    def origins(self) -> IntArray:
        """The numbers, in the user's graph, of the factors that give birth."""
        parts = zip(self.forms, self.slot, strict=True)
        return np.concatenate(
            [np.zeros(0, np.int64), *(form.origin[slot >= 0] for form, slot in parts)]
        )


def _planned(forms: list[Forms], step: IntArray) -> tuple[IntArray, IntArray]:
    """What the kernel says of all factors, one behind the other."""
    arity = np.concatenate([np.zeros(0, np.int64), *(np.full(len(f), f.arity) for f in forms)])
    variable = np.concatenate([np.zeros(0, np.int32), *(f.scope.ravel() for f in forms)])
    level = np.concatenate([np.zeros(0, np.int8), *(_levels(f, step).ravel() for f in forms)])
    own = np.flatnonzero(level > -2)
    count = np.bincount(variable[own], minlength=len(step))
    return plan_births(
        np.concatenate([[0], np.cumsum(arity)]),
        variable,
        level,
        np.repeat(np.arange(len(arity)), arity),
        np.concatenate([[0], np.cumsum(count)]),
        own[np.argsort(variable[own], kind="stable")],
        NUM_LEVELS,
    )


def _levels(form: Forms, step: IntArray) -> NDArray[np.int8]:
    """(factor, slot): -2 for a real of an earlier step, -1 for one that the factor does not hold,
    and else how late it should be born through it.

    Evidence of its own step comes last: it should meet a real that its past speaks for. Densities
    of their first real come first: they are what the user meant as such.
    """
    first = np.zeros(form.scope.shape, dtype=bool)
    first[:, 0] = form.leads
    new, conditional = form.is_new[:, None], form.is_conditional[:, None]
    level = np.where(new, np.where(first, 3, 4), np.where(conditional, np.where(first, 0, 1), 2))
    level[np.diagonal(form.A, axis1=1, axis2=2) >= 0] = -1
    level[step[form.scope] < form.step[:, None]] = -2
    return level.astype(np.int8)


def _taken_apart(forms: list[Forms], step: IntArray, birth: IntArray) -> list[Forms] | None:
    """Factors that hold several unborn reals at once, as the density of one of them given the
    others, and what is left over these; None where there are none."""
    found: list[Forms] = []
    changed = False
    for form in forms:
        held = np.diagonal(form.A, axis1=1, axis2=2) < 0
        own = step[form.scope] == form.step[:, None]
        unborn = own & (birth[form.scope] < 0)
        several = (unborn.sum(axis=1) > 1) & (unborn & held).any(axis=1) & ~form.is_conditional
        found.append(form.take(~several))
        if several.any():
            changed = True
            some = form.take(several)
            # The last one, so that the first stays a density of its own.
            slot = form.arity - 1 - np.argmax((unborn & held)[several][:, ::-1], axis=1)
            parts, rest = some.split(slot)
            link = np.zeros(some.b.shape)
            np.put_along_axis(link, parts.others, -parts.coefficients, 1)
            link[np.arange(len(slot)), slot] = 1.0
            precision = 1 / parts.var
            found.append(
                replace(
                    some,
                    A=-0.5 * precision[:, None, None] * link[:, :, None] * link[:, None, :],
                    b=(precision * parts.offset)[:, None] * link,
                    c=-0.5 * (precision * parts.offset**2 + np.log(2 * np.pi * parts.var)),
                    leads=np.zeros(len(slot), dtype=bool),
                )
            )
            found.append(rest)
    return [form for form in found if len(form)] if changed else None


def _not_held(
    forms: list[Forms], step: IntArray, birth: IntArray, variables: Variables, times: IntArray
) -> DivergentModelError:
    """The error of reals that no factor up to their time holds."""
    loose = np.flatnonzero(birth < 0)
    at = int(loose[np.argmin(step[loose])])
    name, when = variables.names[at], times[step[at]]
    beside = set()
    for form in forms:
        unborn = (birth[form.scope] < 0) & (step[form.scope] == form.step[:, None])
        both = (form.scope == at).any(axis=1) & (form.step == step[at])
        beside |= set(form.scope[both][unborn[both]][:8].tolist()) - {at}
    others = listed([f"'{variables.names[one]}'" for one in sorted(beside)[:3]])
    why = f": it is only tied to {others}, which nothing holds either" if beside else ""
    return DivergentModelError(
        f"the model up to time {when} is not a distribution, so that it cannot be filtered: no "
        f"factor up to then holds '{name}'{why}. Give it a prior, such as "
        f"'normal({name} | 0, 100)'"
    )
