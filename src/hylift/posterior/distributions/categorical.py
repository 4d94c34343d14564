"""Marginals of discrete variables."""

import operator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.components.categorical import draw_states
from hylift.components.family import FloatArray, IntArray
from hylift.errors import ArgumentError, did_you_mean
from hylift.graph import boolean
from hylift.posterior.distributions.base import (
    BatchedDistribution,
    FloatOrArray,
    Seed,
    normalized,
    read_only,
    real_array,
    sample_arguments,
    unwrap,
)
from hylift.words import printable

SHOWN_STATES = 8


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Categorical(BatchedDistribution):
    """A probability for each of finitely many labelled states."""

    probs: FloatArray  # (*batch, state)
    states: tuple[str, ...]

    _event_ndims: ClassVar[dict[str, int]] = {"probs": 1}

    def __post_init__(self) -> None:
        states = tuple(self.states)
        probs = real_array("probs", self.probs, low=0.0)
        if not states or len(set(states)) < len(states):
            raise ArgumentError(f"states must be distinct labels, at least one, but are {states}")
        if probs.ndim == 0 or probs.shape[-1] != len(states):
            raise ArgumentError(
                f"probs must have shape (*batch, {len(states)}), one per state, "
                f"but have shape {probs.shape}"
            )
        object.__setattr__(self, "probs", read_only(normalized("probs", probs)))
        object.__setattr__(self, "states", states)

    @property
    def num_states(self) -> int:
        return len(self.states)

    @property
    def is_boolean(self) -> bool:
        """True if its states are false and true."""
        return self.states == boolean.states

    @property
    def mode_number(self) -> int | IntArray:
        return self.mode_state

    @property
    def mode_state(self) -> int | IntArray:
        """Index of the most probable state (the first of equals)."""
        index = np.argmax(self.probs, axis=-1)
        return index if self.batch_shape else int(index)

    @property
    def mode(self) -> str | NDArray[np.str_]:
        """Label of the most probable state (the first of equals)."""
        index = self.mode_state
        return self.states[index] if isinstance(index, int) else np.array(self.states)[index]

    @property
    def entropy(self) -> FloatOrArray:
        """Entropy in nats."""

        def compute(rows: "Categorical") -> FloatArray:
            return np.asarray(special.entr(rows.probs).sum(axis=-1))

        return self._by_row(compute, width=len(self.states))

    def prob(self, state: str | int) -> FloatOrArray:
        """The probability of a state, given by label, or by index where that is no label."""
        return unwrap(np.asarray(self.probs[..., self._index_of(state)]))

    def sample(self, size: int, *, seed: Seed) -> IntArray:
        """`size` independent state indices from every row, shape ``(size, *batch)``."""
        size, rng = sample_arguments(size, seed)
        return draw_states(self._flat().probs, size, rng).reshape(size, *self.batch_shape)

    def __repr__(self) -> str:
        if self.batch_shape:
            return f"Categorical(batch_shape={self.batch_shape}, states={len(self.states)})"
        shown = [
            f"{printable(state, one_line=True)}: {prob:.3f}"
            for state, prob in zip(self.states[:SHOWN_STATES], self.probs, strict=False)
        ]
        hidden = len(self.states) - len(shown)
        return f"Categorical({', '.join(shown)}{f', … {hidden} more' if hidden else ''})"

    def _index_of(self, state: Any) -> int:
        allowed = f"Allowed: {', '.join(map(repr, self.states))}."
        # A number that is a label means the label.
        label = state if isinstance(state, str) else str(operator.index(state))
        if label in self.states:
            return self.states.index(label)
        if isinstance(state, str):
            raise ArgumentError(
                f"unknown state {state!r}.{did_you_mean(state, self.states)} {allowed}"
            )
        if not 0 <= state < len(self.states):
            raise ArgumentError(
                f"state index {label} is not in 0..{len(self.states) - 1}. {allowed}"
            )
        return operator.index(state)
