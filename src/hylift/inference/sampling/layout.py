"""The structure that chains and particles share: terms, blocks of reals, groups of states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.inference.local.terms import LocalTerms
from hylift.inference.sampling.functions import FunctionDraws
from hylift.inference.sampling.groups import Members, neighbours, state_groups
from hylift.inference.sampling.state import RealBlocks, StateGroups
from hylift.inference.sampling.structure import Ties, given_functions, real_blocks
from hylift.rewrite.kinds import Kinds


class Layout(NamedTuple):
    """A graph as the kernels of sweeps read it."""

    terms: LocalTerms
    blocks: RealBlocks
    groups: StateGroups
    functions: FunctionDraws | None
    is_connected: bool
    """True if draws are known to lead around all hard constraints."""
    tied: NDArray[np.int64]  # (variable,): its group of two or more, or -1
    together: Members
    """Groups of neighbours; none where there are too many."""

    @classmethod
    def of(cls, kinds: Kinds, num_chains: int, seed: np.random.SeedSequence) -> Layout:
        terms = given_functions(LocalTerms.of(kinds))
        blocks, ties = real_blocks(terms, num_chains), Ties.of(terms)
        together = neighbours(terms, blocks)
        groups = state_groups(terms, blocks, ties.group, together)
        functions = FunctionDraws.of(kinds, terms, blocks, seed) if kinds.functions else None
        return cls(terms, blocks, groups, functions, ties.is_connected, ties.group, together)
