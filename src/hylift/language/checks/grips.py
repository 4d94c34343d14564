"""The joint effect of the rules of a model on a real, and the reason if it is not confined."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hylift.language.lowering.evaluate import TruthArray
from hylift.language.syntax import Atom

MAX_JOINT_STATES = 2**20
"""Most joint states of the atoms around a real that are looked at together."""

Labels = tuple[str, ...]
"""Per state of a discrete variable: what holds in it, in words; empty where there are none."""


@dataclass(frozen=True, slots=True, eq=False)
class Grip:
    """The effect of a rule on a real, in each joint state of the discrete variables around it."""

    choices: Mapping[Hashable, Labels]
    """By what the real sees them as: equal for the same variable in other rules."""
    holds: TruthArray  # (states of the first choice, ...)
    pushes: bool = False
    """True if it grows towards an open end of the real, in some state."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why the density may be improper in a real."""

    reason: str
    state: str = ""
    """A state in which no rule confines it, in words."""
    deciding: tuple[str, ...] = ()
    """The predicates of the atoms in that state."""
    around: tuple[str, ...] = ()
    """Those of all discrete atoms around the real."""


def fault_of(grips: Sequence[Grip]) -> Fault | None:
    """The reason why the density may be improper in a real; None if every state confines it."""
    if any(grip.holds.all() for grip in grips):
        return None
    if not grips:
        return Fault("no rule mentions its value")
    if any(grip.holds.any() for grip in grips):
        return _unheld_state(grips)
    if any(grip.pushes for grip in grips):
        return Fault("its rules favour large values")
    return Fault("none of its rules has a negative square of it")


def in_words(fault: Fault, closable: Sequence[str]) -> str:
    if not fault.state:
        return fault.reason
    text = f"for example, not where {fault.state}"
    if closable:
        names = " and ".join(f"'{name}'" for name in closable)
        text += f", unless {names} {'is' if len(closable) == 1 else 'are'} closed-world"
    return f"{fault.reason} ({text})"


def _unheld_state(grips: Sequence[Grip]) -> Fault | None:
    """A joint state in which no rule confines a real; None if there is none."""
    reason = "its rules confine it only in some states"
    choices = {key: labels for grip in grips for key, labels in grip.choices.items()}
    sizes = [len(labels) for labels in choices.values()]
    if math.prod(sizes) > MAX_JOINT_STATES:
        return Fault(reason)
    order = list(choices)
    held = np.zeros(sizes, dtype=np.bool_)
    for grip in grips:
        axes = [order.index(key) for key in grip.choices]
        shape = [size if axis in axes else 1 for axis, size in enumerate(sizes)]
        held |= np.transpose(grip.holds, np.argsort(axes)).reshape(shape)
    if held.all():
        return None
    state: list[int | slice] = [int(i) for i in np.argwhere(~held)[0]]
    for axis, fixed in enumerate(state):
        # What makes no difference is left out.
        state[axis] = slice(None)
        if held[tuple(state)].any():
            state[axis] = fixed
    fixed_by = {key: i for key, i in zip(choices, state, strict=True) if not isinstance(i, slice)}
    words = " and ".join(filter(None, (choices[key][i] for key, i in fixed_by.items())))
    return Fault(reason, words, _predicates(fixed_by), _predicates(choices))


def _predicates(choices: Iterable[Hashable]) -> tuple[str, ...]:
    """The distinct predicates of discrete variables as a real sees them."""
    names: dict[str, None] = {}
    for choice in choices:
        match choice:
            case (int(), Atom(predicate=name)) | (str(name), *_):
                names[name] = None
    return tuple(names)
