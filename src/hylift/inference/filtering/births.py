"""The factor through which each hidden real enters the filter: its birth."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.errors import DivergentModelError
from hylift.graph import Variables
from hylift.inference.filtering.forms import ROUNDING, FilterFactors, FloatArray, IntArray
from hylift.inference.filtering.kernels import plan_births
from hylift.numerics.segments import inverse, offsets
from hylift.numerics.sparse import connected_by
from hylift.proper.improper import ImproperDirection
from hylift.words import listed


@dataclass(frozen=True, slots=True, eq=False)
class Births:
    """The reals born through factors, as densities given older reals, and their order."""

    forms: list[FilterFactors]
    """All factors; some were split, so that each gives birth to at most one real."""
    slot: list[IntArray]
    """Per form (factor,): the slot that it gives birth to, or -1."""
    rank: IntArray
    """(variable,): its place among all births of a step, older ones first."""
    origins: IntArray
    """The numbers, in the user's graph, of the factors that give birth."""

    @classmethod
    def of(
        cls, forms: list[FilterFactors], step: IntArray, variables: Variables, times: IntArray
    ) -> Births:
        """A plan for hidden variables; step (hidden variable,), times (step,)."""
        merged = np.zeros(0, dtype=np.int64)
        while True:
            birth, order = _planned(forms, step)
            if len(order) == len(step):
                break
            looser = _split_up(forms, step, birth)
            if looser is None:
                looser, origins = _merged(forms, step, birth)
                merged = np.concatenate([merged, origins])
            if looser is None:
                raise _improper(forms, step, birth, variables, times)
            forms = looser
        rank = inverse(order, len(step))
        slots, giving, begin = [], [merged], 0
        birth = np.append(birth, -1)  # That of slots which are known.
        for form in forms:
            entry = begin + np.arange(form.scope.size).reshape(form.scope.shape)
            chosen = birth[form.scope] == entry
            slots.append(np.where(chosen.any(axis=1), np.argmax(chosen, axis=1), -1))
            giving.append(form.origin[chosen.any(axis=1)])
            begin += form.scope.size
        return cls(forms, slots, rank, np.concatenate(giving))


def _planned(forms: list[FilterFactors], step: IntArray) -> tuple[IntArray, IntArray]:
    """(variable,) the entry each is born through, or -1, and the order of births.

    Of the factors that may give birth to a real, those of a low level come first, then the most
    precise one. All further keys make the plan independent of the order of factors.
    """
    arity = np.concatenate([np.zeros(0, np.int64), *(np.full(len(f), f.arity) for f in forms)])
    variable = np.concatenate([np.zeros(0, np.int32), *(f.scope.ravel() for f in forms)])
    level = np.concatenate([np.zeros(0, np.int8), *(_levels(f, step).ravel() for f in forms)])
    keys = np.concatenate([np.zeros((0, 5)), *(_keys(f) for f in forms)])
    able = np.flatnonzero(level >= 0)
    by_rank = able[np.lexsort((*keys[able].T, variable[able], level[able]))]
    rank = np.minimum(level, -1).astype(np.int64)
    rank[by_rank] = np.arange(len(by_rank))
    own = np.flatnonzero(level > -2)
    count = np.bincount(variable[own], minlength=len(step))
    unborn = np.zeros(len(arity), dtype=np.int64)
    birth, order = np.full((2, len(step)), -1)
    num_born = plan_births(
        offsets(arity),
        variable,
        rank,
        np.repeat(np.arange(len(arity)), arity),
        offsets(count),
        own[np.argsort(variable[own], kind="stable")],
        by_rank,
        unborn,
        birth,
        order,
    )
    return birth, order[:num_born]


def _keys(form: FilterFactors) -> FloatArray:
    """(factor and slot, key): sort keys of the factors of a real, the last one first."""
    flat = form.absorbed()
    whole = np.stack([form.scope.max(axis=1), form.scope.sum(axis=1), flat.c], axis=1)
    of_factor = np.broadcast_to(whole[:, None, :], (*form.scope.shape, 3))
    of_slot = np.stack([flat.b, flat.diagonal], axis=2)
    return np.concatenate([of_factor, of_slot], axis=2).reshape(-1, 5)


def _levels(form: FilterFactors, step: IntArray) -> NDArray[np.int8]:
    """(factor, slot): -2 for a real that is known or of an earlier step, -1 for one without a
    negative square in the factor, and else how late it should be born through it.

    Evidence of its own step comes last, so that it meets a real with a prediction. Densities of
    their first real come first: the user wrote them as such.
    """
    first = np.zeros(form.scope.shape, dtype=bool)
    first[:, 0] = form.leads
    new, conditional = form.is_new[:, None], form.absorbed().is_conditional[:, None]
    level = np.where(new, np.where(first, 3, 4), np.where(conditional, np.where(first, 0, 1), 2))
    level[form.diagonal >= 0] = -1
    level[~_of_own_step(form, step)] = -2
    return level.astype(np.int8)


def _of_own_step(form: FilterFactors, step: IntArray) -> NDArray[np.bool_]:
    """(factor, slot): whether it is a hidden real of the step of the factor."""
    return np.asarray(np.append(step, -1)[form.scope] == form.step[:, None])


def _unborn(form: FilterFactors, step: IntArray, birth: IntArray) -> NDArray[np.bool_]:
    """(factor, slot): whether it is an unborn hidden real of the step of the factor."""
    return _of_own_step(form, step) & (np.append(birth, 0)[form.scope] < 0)


def _split_up(
    forms: list[FilterFactors], step: IntArray, birth: IntArray
) -> list[FilterFactors] | None:
    """Factors of several unborn reals split into the density of one of them given the others, and
    the rest; None where there are none."""
    found: list[FilterFactors] = []
    changed = False
    for form in forms:
        held, unborn = form.diagonal < 0, _unborn(form, step, birth)
        several = (unborn.sum(axis=1) > 1) & (unborn & held).any(axis=1)
        several[several] = ~form.take(several).is_conditional
        found.append(form.take(~several))
        if several.any():
            changed = True
            some = form.take(several)
            # The last one, so that the first stays a density of its own.
            slot = form.arity - 1 - np.argmax((unborn & held)[several][:, ::-1], axis=1)
            parts, rest = some.split(slot)
            link = parts.link(slot)
            precision = 1 / parts.var
            found.append(
                replace(
                    some,
                    A=-0.5 * precision[:, None, None] * link[:, :, None] * link[:, None, :],
                    b=(precision * parts.offset)[:, None] * link,
                    c=-0.5 * (precision * parts.offset**2 + np.log(2 * np.pi * parts.var)),
                    error=np.zeros(len(slot)),
                    leads=np.zeros(len(slot), dtype=bool),
                )
            )
            found.append(rest)
    return [form for form in found if len(form)] if changed else None


def _merged(
    forms: list[FilterFactors], step: IntArray, birth: IntArray
) -> tuple[list[FilterFactors] | None, IntArray]:
    """Factors that only together are proper in unborn reals, summed, and the numbers of those
    factors; None where this does not help.

    Without evidence of their step, if that suffices.
    """
    for with_new in (False, True):
        touching = [
            _unborn(form, step, birth).any(axis=1) & (with_new | ~form.is_new) for form in forms
        ]
        some = [form.take(at).absorbed() for form, at in zip(forms, touching, strict=True)]
        tied = _components([(f.scope, _unborn(f, step, birth)) for f in some], len(step))
        good = np.zeros(len(step), dtype=bool)
        kept = []
        for form in _sums(some, tied):
            unborn = _unborn(form, step, birth)
            holds = _is_density(form, unborn)
            good[form.scope[holds][unborn[holds]]] = True
            kept.append(form.take(holds))
        if good.any():
            used = [
                at & (good[form.scope] & _unborn(form, step, birth)).any(axis=1)
                for form, at in zip(forms, touching, strict=True)
            ]
            left = [form.take(~at) for form, at in zip(forms, used, strict=True)]
            origins = [form.origin[at] for form, at in zip(forms, used, strict=True)]
            return [form for form in (*left, *kept) if len(form)], np.concatenate(origins)
    return None, np.zeros(0, dtype=np.int64)


def _components(
    scopes: list[tuple[NDArray[np.int32], NDArray[np.bool_]]], num_variables: int
) -> list[IntArray]:
    """Per form (factor,): its component of unborn reals; scopes, and which slots are unborn."""
    first = [scope[np.arange(len(scope)), np.argmax(unborn, axis=1)] for scope, unborn in scopes]
    # In place of slots that are not unborn the first one that is, which links nothing.
    tied = (
        np.where(unborn, scope, own[:, None])
        for (scope, unborn), own in zip(scopes, first, strict=True)
    )
    component = connected_by(num_variables, tied)
    return [component[own].astype(np.int64) for own in first]


def _sums(forms: list[FilterFactors], component: list[IntArray]) -> list[FilterFactors]:
    """The sum of the factors of each component, by arity; evidence is absorbed."""
    bound = 1 + max((int(form.scope.max(initial=0)) for form in forms), default=0)
    entries = [
        (own[:, None] * bound + form.scope)[form.is_hidden]
        for form, own in zip(forms, component, strict=True)
    ]
    pairs = np.unique(np.concatenate([np.zeros(0, np.int64), *entries]))
    # Pairs of a component and a real, one component's after another's.
    label, begin, size = np.unique(pairs // bound, return_index=True, return_counts=True)
    found = []
    for arity in np.unique(size):
        some = np.flatnonzero(size == arity)
        place = inverse(some, len(label))
        scope = (pairs[begin[some][:, None] + np.arange(arity)] % bound).astype(np.int32)
        count, none = len(scope), np.zeros(scope.shape)
        empty = np.zeros((count, arity, arity)), none, np.zeros(count), np.zeros(count, np.int64)
        total = FilterFactors.of(scope, *empty, scale=none.copy())
        for form, own in zip(forms, component, strict=True):
            number = np.searchsorted(label, own)
            at = np.flatnonzero(place[number] >= 0)
            part, number = form.take(at), number[at]
            column = np.searchsorted(pairs, own[at][:, None] * bound + part.scope)
            column = np.where(part.is_hidden, column - begin[number][:, None], 0)
            _add(total, part, place[number], column)
        found.append(total)
    return found


def _add(total: FilterFactors, part: FilterFactors, factor: IntArray, column: IntArray) -> None:
    """Add factors to those with these numbers, their slots in these columns."""
    np.add.at(total.A, (factor[:, None, None], column[:, :, None], column[:, None, :]), part.A)
    np.maximum.at(total.scale, (factor[:, None], column), np.where(part.is_hidden, part.scale, 0))
    np.add.at(total.b, (factor[:, None], column), part.b)
    np.add.at(total.c, factor, part.c)
    np.add.at(total.error, factor, part.error)
    total.step[factor] = part.step
    np.logical_or.at(total.is_new, factor, part.is_new)


def _is_density(form: FilterFactors, unborn: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(factor,): whether it is a density of its unborn reals given the others."""
    both = unborn[:, :, None] & unborn[:, None, :]
    own = -form.diagonal
    held = ((own > 0) | ~unborn).all(axis=1)
    unit = 1 / np.sqrt(np.where(unborn & (own > 0), own, 1.0))
    block = np.where(both, -form.A * unit[:, :, None] * unit[:, None, :], 0.0)
    block += np.where(unborn, 0.0, 1.0)[:, :, None] * np.eye(form.arity)
    return np.asarray(held & (np.linalg.eigvalsh(block)[:, 0] > ROUNDING))


def _improper(
    forms: list[FilterFactors],
    step: IntArray,
    birth: IntArray,
    variables: Variables,
    times: IntArray,
) -> DivergentModelError:
    """The error for reals that no factor up to their time makes proper."""
    loose = np.flatnonzero(birth < 0)
    at = int(loose[np.argmin(step[loose])])
    name, when = variables.names[at], times[step[at]]
    beside = set()
    for form in forms:
        unborn = _unborn(form, step, birth)
        both = (form.scope == at).any(axis=1) & (form.step == step[at])
        beside |= set(form.scope[both][unborn[both]][:8].tolist()) - {at}
    others = listed([f"'{variables.names[one]}'" for one in sorted(beside)[:3]])
    why = f" (it is only coupled to {others}, which is improper too)" if beside else ""
    found = ImproperDirection(((name, 1.0),), context=f"up to time {when}, ")
    return found.error(
        f"{why}, so it cannot be filtered", f"add a prior such as 'normal({name} | 0, 100)'"
    )
