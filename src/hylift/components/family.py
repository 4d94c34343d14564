"""The interface of a family of mixture components."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

GAUSSIAN, BETA, CATEGORICAL = 0, 1, 2
"""Codes of the families, in saved files and in kernels."""

LEAST_WEIGHT = 1e-6
"""Of a component, during optimisation."""
LEAST_PROBABILITY = 1e-10
LEAST_BETA, MOST_BETA = 0.55, 1e9
"""Limits of alpha and beta: below a half, the square of a density has no integral."""


class Nodes(NamedTuple):
    """Quadrature nodes of a real, or the states of a discrete variable."""

    points: FloatArray  # (variable, component, node)
    weights: FloatArray  # (variable, component, node)
    scores: FloatArray | None
    """(variable, component, node, parameter): gradient of the log density of a real."""


class Family(ABC):
    """The parameters of some variables of one family, under every component of a mixture.

    A new family is a final subclass in a file of its own, listed in `layout.FAMILIES` at the
    position of its code, and a branch in the loops of `components/kernels`.
    """

    __slots__ = ()
    code: ClassVar[int]
    is_discrete: ClassVar[bool]

    @classmethod
    @abstractmethod
    def of(cls, entries: FloatArray, lower: FloatArray, upper: FloatArray) -> Self:
        """From entries (variable, parameter, component) and bounds (variable,)."""

    @classmethod
    @abstractmethod
    def neutral(cls, size: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(entry,): uninformative parameters, `size` of them for each variable."""

    @abstractmethod
    def check(self) -> None:
        """Raise a ModelError unless the parameters are valid."""

    @abstractmethod
    def log_density(self, values: FloatArray) -> FloatArray:
        """log q_i^k at values (point, variable): (point, variable, component)."""

    @abstractmethod
    def finite_log_density(self, values: FloatArray) -> FloatArray:
        """log q_i^k (variable, component) at values (variable,), bounded near poles."""

    @abstractmethod
    def modes(self) -> FloatArray:
        """The mode under each component, (variable, component)."""

    @abstractmethod
    def best(self, share: FloatArray) -> FloatArray:
        """(variable,): the maximiser of Σ_k share_k log q_i^k; share: (component,), or of each
        variable."""

    @abstractmethod
    def draw(self, component: int, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent draws from one component, (size, variable)."""

    @abstractmethod
    def nodes(self, num_nodes: int) -> Nodes:
        """Gauss nodes of reals, or all states."""

    @abstractmethod
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and variances, (variable, component)."""
