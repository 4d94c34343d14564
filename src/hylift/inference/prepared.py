"""A graph made ready for inference, as every method takes it, and its connected parts."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Conditioned, FactorGraph
from hylift.lifting import Lifting, lift
from hylift.posterior import Assignment, Marginals, with_observed
from hylift.posterior.answers import Kind, is_exact
from hylift.posterior.marginals import Batches
from hylift.proper.check import check_proper, check_units
from hylift.rewrite.centred import ByOrigin
from hylift.rewrite.kinds import in_standard_form, with_tables
from hylift.rewrite.merge import merge_factors
from hylift.rewrite.parts import parts_of
from hylift.rewrite.rewrites import rewritten
from hylift.rewrite.rewritten import Rewritten

MOST_SLOTS = 20_000_000
"""Slots of a graph up to which it is checked for loops."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A graph with its evidence absorbed. `infer` makes it once, for whichever method it calls.

    What only some methods need (the lifting, whether the graph is a forest or a distribution) is
    computed when it is first asked for, and kept.
    """

    conditioned: Conditioned
    ground: FactorGraph
    """The graph of the hidden variables, with evidence absorbed into its factors. Functions of
    discrete variables are tables, unless they have too many states."""

    rewrites: tuple[Rewritten, ...] = ()
    """The rewrites that made `source` of the ground graph of `whole`."""
    whole: Prepared | None = None
    """The graph before these rewrites, where there are any."""
    origin: NDArray[np.float64] | None = None
    """(variable of `source`,): what the reals of `ground` are measured from; None for 0."""

    @classmethod
    def of(cls, graph: FactorGraph) -> Prepared:
        source = in_standard_form(graph, keeps_origins=True)
        check_units(source)
        found = Conditioned.of(source)
        return cls(found, with_tables(in_standard_form(found.graph)))

    def rewritten(self, names: Collection[str], *, maximise: bool = False) -> Prepared:
        """The graph after the rewrites of these names, as a graph without evidence, whose reals are
        measured from 0.

        maximise: for the best assignment, where `keeps_maximum` is False otherwise.
        """
        rewrites = rewritten(self.ground, names, maximise=maximise)
        if not rewrites and self.origin is None:
            return self
        last = rewrites[-1].graph if rewrites else self.ground
        return replace(Prepared.of(last), rewrites=rewrites, whole=self)

    def centred(self, origin: NDArray[np.float64]) -> Prepared:
        """The same with hidden reals measured from an origin (variable of `source`,)."""
        ground = with_tables(self.by_origin.centred(origin))
        return Prepared(self.conditioned, ground, origin=origin)

    @functools.cached_property
    def by_origin(self) -> ByOrigin:
        """The source, whose reals may be measured from any origin."""
        return ByOrigin.of(self.source)

    @functools.cached_property
    def lost(self) -> float:
        """Rounding error of log-densities, at most."""
        nowhere = np.zeros(self.source.num_variables)
        return self.by_origin.lost(nowhere if self.origin is None else self.origin).total

    @property
    def keeps_maximum(self) -> bool:
        """True if the best assignment leads back to the best one before all rewrites."""
        return all(one.keeps_maximum for one in self.rewrites)

    @property
    def source(self) -> FactorGraph:
        """As the user gave it, with evidence and with potentials in standard form."""
        return self.conditioned.source

    @property
    def hidden(self) -> NDArray[np.int64]:
        """(variable of `ground`,): its id in `source`."""
        return self.conditioned.hidden

    @functools.cached_property
    def lifting(self) -> Lifting:
        """The exact lifting of `ground`."""
        return lift(self.ground)

    @functools.cached_property
    def is_forest(self) -> bool:
        """True if `ground` has no loops."""
        return is_forest(self.ground)

    def check_proper(self) -> None:
        """Raise if `ground` is not a distribution, where that can be proven."""
        _ = self._is_checked

    @functools.cached_property
    def _is_checked(self) -> bool:
        check_proper(self.ground)
        return True

    @functools.cached_property
    def observed(self) -> NDArray[np.bool_]:
        """(variable of `source`,): whether it was observed without error."""
        return ~self.source.is_hidden

    def with_ground(self, ground: FactorGraph) -> Prepared:
        """The same model with its factors written differently, over the same hidden variables."""
        return replace(self, ground=ground)

    def with_merged_factors(self) -> Prepared:
        """The same model with factors of nested scopes merged into one."""
        return self.with_ground(merge_factors(self.ground, "shared"))

    def view(self, *, is_lifted: bool) -> View:
        """The graph to infer in: `ground` itself, or its exact lifting."""
        return View.lifted(self, self.lifting) if is_lifted else View.whole(self)

    def assignment(
        self,
        values: NDArray[np.float64],
        energy: float,
        kind: Kind = "estimate",
        gap: float = np.inf,
    ) -> Assignment:
        """An assignment to all variables: these values of the hidden ones, and what was observed.

        values: (variable of `ground`,)
        """
        evidence = self.source.evidence
        whole = np.zeros(self.source.num_variables)
        whole[evidence.variable] = evidence.value
        whole[self.hidden] = self.uncentred(values)
        gap = 0.0 if kind == "exact" else gap
        if kind == "exact" and not is_exact(energy, self.lost, 0.0):
            kind, gap = "estimate", 2 * self.lost
        return Assignment(self.source.variables, whole, self.observed, energy, kind, gap)

    def uncentred(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (…, variable of `ground`) as the user has them."""
        return values if self.origin is None else values + self.origin[self.hidden]

    def energy(self, values: NDArray[np.float64]) -> float:
        """-log ψ of values (variable of `source`,)."""
        origin = np.zeros(1) if self.origin is None else self.origin[self.hidden]
        return -self.ground.log_density(values[self.hidden] - origin)

    def marginals(self, found: Marginals | Batches) -> Marginals:
        """Marginals of the variables of `source`, from those of `ground`."""
        whole = with_observed(self.source, self.hidden, found)
        return whole if self.origin is None else whole.shifted(self.origin)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A graph to infer in, ground or lifted, and how the hidden variables stand in it."""

    prepared: Prepared
    graph: FactorGraph
    variable_to_class: NDArray[np.int32]  # (hidden variable,): its variable in `graph`
    parent: NDArray[np.int32] | None = None
    """(variable of `graph`,): its variable in the previous, coarser view."""
    is_last: bool = True
    """True if no finer view follows."""
    shift: NDArray[np.float64] | None = None
    """(hidden variable,): offset to add to values in `graph`; None for no offset."""

    @classmethod
    def whole(cls, prepared: Prepared) -> View:
        """The ground graph."""
        same = np.arange(prepared.ground.num_variables, dtype=np.int32)
        return cls(prepared, prepared.ground, same)

    @classmethod
    def lifted(
        cls,
        prepared: Prepared,
        lifting: Lifting,
        parent: NDArray[np.int32] | None = None,
        *,
        is_last: bool = True,
    ) -> View:
        """The graph of classes of a lifting."""
        return cls(prepared, lifting.graph, lifting.variable_to_class, parent, is_last)

    @property
    def ground(self) -> FactorGraph:
        return self.prepared.ground

    @property
    def hidden(self) -> NDArray[np.int64]:
        return self.prepared.hidden


def is_forest(graph: FactorGraph) -> bool:
    """True if a graph has no loops, so that message passing is exact in it."""
    if not graph.is_ground:
        return False
    if any(g.arity > 1 and (g.multiplicity != 1).any() for g in graph.groups):
        return False
    num_slots = sum(group.scope.size for group in graph.groups)
    if num_slots >= graph.num_variables + graph.num_factors or num_slots > MOST_SLOTS:
        return num_slots == 0
    # A forest of variables and factors has as many edges as nodes, less one for each of its trees.
    num_factors = sum(len(group) for group in graph.groups if group.arity)
    return num_slots == graph.num_variables + num_factors - parts_of(graph)[1]
