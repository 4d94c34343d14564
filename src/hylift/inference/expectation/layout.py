"""Sites of expectation propagation, laid out for the kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.inference.expectation.coordinates import (
    Piece,
    constants,
    in_coordinates,
    of_bounds,
    of_functions,
)
from hylift.inference.expectation.joint import FloatArray, Ids, Joint, Solved
from hylift.inference.expectation.kernels import joint as kernels
from hylift.inference.expectation.kernels.sites import SITE, SiteLayout, Tilted
from hylift.inference.expectation.merging import is_base
from hylift.inference.expectation.numeric import BoundSites
from hylift.inference.message.layout import Points
from hylift.inference.prepared import Prepared
from hylift.inference.terms import Terms
from hylift.numerics.segments import number_rows, offsets
from hylift.rewrite.kinds import by_states
from hylift.rewrite.parts import parts_of


def without_constants(prepared: Prepared) -> Prepared:
    """The same model without functions that have one value wherever they are tried, such as those
    whose observed condition is false."""
    graph, constant, groups = prepared.ground, prepared.ground.log_constant, []
    variables = graph.variables
    for group in graph.groups:
        if group.potential.quadratic() is None and group.potential.num_reals and len(group):
            for some in by_states(group, variables.num_states):
                value, is_constant = constants(some, variables)
                constant += float(value[is_constant] @ some.multiplicity[is_constant])
                if not is_constant.all():
                    groups.append(some.take(np.flatnonzero(~is_constant)))
        else:
            groups.append(group)
    return prepared.with_ground(graph.with_groups(groups, constant))


def with_powers(graph: FactorGraph) -> FactorGraph:
    """The same model, with quadratics that stand several times as one factor."""
    groups = []
    for group in graph.groups:
        is_quadratic = group.potential.num_reals and group.potential.quadratic() is not None
        if is_quadratic and (group.multiplicity != 1).any():
            flat = group.potential.take(group.row).flat
            hard = np.isneginf(flat)
            power = np.where(hard, -np.inf, np.where(hard, 0.0, flat) * group.multiplicity[:, None])
            row = np.arange(len(group), dtype=np.int32)
            potential, ones = group.potential.with_flat(power), np.ones(len(group))
            group = group.changed(potential=potential, row=row, multiplicity=ones)
        groups.append(group)
    return graph.with_groups(groups)


@dataclass(frozen=True, eq=False)
class Sites:
    """Factors that the joint Gaussian and independent states approximate, one after the other.

    The coordinates of a site are its reals, or fewer linear combinations of them: basisᵀ reals.
    """

    pieces: Sequence[Piece]
    points: Points  # states of the discrete variables; its terms are the sites
    joint: Joint
    dim: Ids  # (site,): coordinates
    basis_ptr: Ids  # (site + 1,)
    basis: FloatArray  # (real slot, coordinate) of each site; nothing where they are the same
    real_ptr: Ids  # (site + 1,)
    step: Ids  # (real slot,): its step in the joint Gaussian
    pair_ptr: Ids  # (site + 1,)
    pair: Ids  # (real slot, real slot) of each site: an entry of the joint Gaussian
    part: NDArray[np.int32]  # (site,): the connected part of the graph that it is in
    part_of_variable: NDArray[np.int32]
    num_parts: int
    tied: Ids  # (site,): the first site that looks alike, by the classes of lifting

    @classmethod
    def of(cls, graph: FactorGraph, classes: NDArray[np.int32] | None = None) -> Sites:
        """classes: (variable,), of look-alikes, where sites of these are tied to each other."""
        chosen = [group for group in graph.groups if not is_base(group) and group.arity]
        base = [group for group in graph.groups if is_base(group)]
        joint = Joint.of(graph, base, [group.reals for group in graph.groups if group.arity])
        closed = [group for group in chosen if group.potential.quadratic() is not None]
        pieces = [piece for group in closed for piece in in_coordinates(group)]
        moments = joint.rough_moments(graph.variables)
        for group in chosen:
            if group.potential.quadratic() is None and len(group):
                for some in by_states(group, graph.variables.num_states):
                    pieces += of_functions(some, graph.variables, *moments)
        pieces += of_bounds(graph.variables, pieces)
        steps = [joint.step[piece.scope[:, piece.num_discrete :]] for piece in pieces]
        num_reals = _per_site(pieces, [piece.num_reals for piece in pieces])
        bases = [
            np.zeros((len(piece), 0)) if piece.basis is None
            else piece.basis[piece.row].reshape(len(piece), -1)
            for piece in pieces
        ]  # fmt: skip
        part, num_parts = parts_of(graph)
        terms = _terms(pieces, graph.variables.num_states)
        return cls(
            pieces,
            Points.of(graph, terms, graph.variables.num_states.astype(np.int64)),
            joint,
            _per_site(pieces, [piece.dim for piece in pieces]),
            offsets(_per_site(pieces, [flat.shape[1] for flat in bases])),
            _joined((flat.ravel() for flat in bases), np.float64),
            offsets(num_reals),
            _joined((at.ravel() for at in steps), np.int64),
            offsets(num_reals**2),
            _joined((joint.positions(at).ravel() for at in steps if at.size), np.int64),
            part[terms.slots[terms.slot_ptr[:-1]]],
            part,
            num_parts,
            np.arange(len(terms)) if classes is None else _tied(pieces, classes),
        )

    def __len__(self) -> int:
        return len(self.dim)

    @property
    def terms(self) -> Terms:
        return self.points.terms

    @cached_property
    def dim_ptr(self) -> Ids:
        """(site + 1,): its coordinates among those of all sites."""
        return offsets(self.dim)

    @cached_property
    def matrix_ptr(self) -> Ids:
        """(site + 1,): its matrix of coordinates among those of all sites."""
        return offsets(self.dim**2)

    @cached_property
    def first(self) -> Ids:
        """(piece + 1,): its first site."""
        return offsets(np.array([len(piece) for piece in self.pieces], dtype=np.int64))

    @cached_property
    def given_ptr(self) -> Ids:
        """(3, site + 1): log-weights, means and covariances of states of sites without closed
        form, among those of all."""
        is_given = _per_site(self.pieces, [piece.numeric is not None for piece in self.pieces])
        count = is_given * self.terms.num_joint
        return np.stack([offsets(count), offsets(count * self.dim), offsets(count * self.dim**2)])

    @cached_property
    def layout(self) -> SiteLayout:
        terms, site = self.terms, np.zeros(len(self), dtype=SITE)
        site["slots"], site["num_discrete"] = terms.slot_ptr[:-1], terms.num_discrete
        site["num_joint"], site["base"], site["dim"] = terms.num_joint, terms.base, self.dim
        site["at"], site["matrix"] = self.dim_ptr[:-1], self.matrix_ptr[:-1]
        site["reals"], site["num_reals"] = self.real_ptr[:-1], np.diff(self.real_ptr)
        site["pairs"], site["basis"] = self.pair_ptr[:-1], self.basis_ptr[:-1]
        site["is_whole"] = np.diff(self.basis_ptr) == 0
        site["given"], site["is_given"] = self.given_ptr[:, :-1].T, np.diff(self.given_ptr[0]) > 0
        place = self.points.place
        return SiteLayout(site, terms.theta, place, self.step, self.pair, self.basis)

    @cached_property
    def of_component(self) -> NDArray[np.int32]:
        """(component,): the part of the graph that a component of the joint Gaussian is in."""
        first = self.joint.steps[self.joint.component_ptr[:-1]]
        return self.part_of_variable[self.joint.real[first]]

    @cached_property
    def cost(self) -> Ids:
        """(site,): work of its tilted distribution."""
        terms = self.terms
        return (
            terms.num_joint * (4 * self.dim**3 + 8 * terms.num_discrete.astype(np.int64) + 8) + 32
        )

    @cached_property
    def _most(self) -> tuple[int, ...]:
        """Of a site, at most: coordinates, joint states, those of one with reals, discrete slots,
        entries of messages."""
        terms = self.terms
        held = np.diff(self.points.place[terms.slot_ptr])
        joint = terms.num_joint
        parts = (self.dim, joint, joint[self.dim > 0], terms.num_discrete, held)
        return tuple(int(part.max(initial=0)) for part in parts)

    def room(self) -> tuple[NDArray[Any], ...]:
        """Scratch for one thread."""
        dim, joint, with_reals, slots, held = self._most
        return (
            np.empty((4, dim, dim)), np.empty((3, dim)), np.empty((3, joint)),
            np.empty((with_reals, dim)), np.empty((with_reals, dim, dim)), np.empty((2, held)),
            np.empty((1, slots), dtype=np.int64),
        )  # fmt: skip

    def tilted(self) -> Tilted:
        """Room for tilted distributions."""
        dims, entries = int(self.dim_ptr[-1]), int(self.matrix_ptr[-1])
        held, count = int(self.points.place[-1]), len(self)
        logs, means, covariances = (np.zeros(int(ptr[-1])) for ptr in self.given_ptr)
        return Tilted(
            np.zeros(dims), np.zeros(entries), np.zeros(held), np.zeros(entries), np.zeros(dims),
            np.zeros(held), np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.int64),
            (logs, means, covariances),
        )  # fmt: skip

    def averages(self, is_weak: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """Natural parameters of sites that are their quadratics, averaged over possible states.

        They make a proper Gaussian if all joint states do. is_weak: (site,), functions that nothing
        else confines.
        """
        precision, linear = [np.zeros(0)], [np.zeros(0)]
        for piece, first in zip(self.pieces, self.first, strict=False):
            r = piece.dim
            if not r:
                continue
            if piece.numeric is not None:
                if isinstance(piece.numeric, BoundSites):
                    own, slope = piece.numeric.start(*self._alone(piece))
                else:
                    own, slope = piece.numeric.start(is_weak[first : first + len(piece)])
                precision.append(own.ravel())
                linear.append(slope.ravel())
                continue
            joint = piece.flat.shape[1] // (r * r + r + 1)
            A, b, c = np.split(piece.flat, [joint * r * r, joint * (r * r + r)], axis=1)
            possible = (c > -np.inf).astype(np.float64)
            possible /= np.maximum(possible.sum(axis=1, keepdims=True), 1.0)
            mean_A = np.einsum("ts,tse->te", possible, A.reshape(len(A), joint, r * r))
            mean_b = np.einsum("ts,tse->te", possible, b.reshape(len(b), joint, r))
            precision.append(-2.0 * mean_A[piece.row].ravel())
            linear.append(mean_b[piece.row].ravel())
        return np.concatenate(precision), np.concatenate(linear)

    def solve(
        self,
        into: Solved,
        some: Ids,
        components: Ids,
        copies: FloatArray,
        precision: FloatArray,
        linear: FloatArray,
    ) -> None:
        """The Gaussian of some components, of the natural parameters of the sites in them, each of
        which counts so many times (site,)."""
        joint = self.joint
        kernels.assemble(
            components, joint.component_ptr, joint.steps, joint.elimination.ptr, joint.base,
            joint.linear, some[self.dim[some] > 0], self.layout, copies, precision, linear,
            into.entries, into.total,
        )  # fmt: skip
        into.solve(components)

    def _alone(self, piece: Piece) -> tuple[FloatArray, FloatArray]:
        """(site,): the precision and linear part that reals have without sites."""
        step = self.joint.step[piece.scope[:, 0]]
        return self.joint.base[step], self.joint.linear[step]


def _tied(pieces: Sequence[Piece], classes: NDArray[np.int32]) -> Ids:
    """(site,): the first of its piece with the same row and with variables of the same classes."""
    tied, begin = [np.zeros(0, dtype=np.int64)], 0
    for piece in pieces:
        if len(piece):
            row = piece.numeric.kind if piece.numeric else piece.row
            columns = (row, *classes[piece.scope].T)
            number, first = number_rows(*(np.asarray(part, dtype=np.int64) for part in columns))
            tied.append(begin + first[number])
        begin += len(piece)
    return np.concatenate(tied)


def _per_site(pieces: Sequence[Piece], values: Sequence[int]) -> Ids:
    return np.repeat(np.array(values, dtype=np.int64), [len(piece) for piece in pieces])


def _joined(parts: Iterable[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])


def _terms(pieces: Sequence[Piece], num_states: NDArray[np.int32]) -> Terms:
    """The sites as terms; their parameters are in the coordinates of each."""
    start = offsets(np.array([piece.flat.size for piece in pieces], dtype=np.int64))
    return Terms(
        num_states,
        offsets(_per_site(pieces, [piece.scope.shape[1] for piece in pieces])),
        _joined((piece.scope.ravel() for piece in pieces), np.int32),
        _per_site(pieces, [piece.num_discrete for piece in pieces]).astype(np.int32),
        _joined(
            (
                at + piece.row.astype(np.int64) * piece.flat.shape[1]
                for at, piece in zip(start, pieces, strict=False)
            ),
            np.int64,
        ),
        _joined((piece.multiplicity for piece in pieces), np.float64),
        _joined((piece.flat.ravel() for piece in pieces), np.float64),
    )
