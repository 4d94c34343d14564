"""The variables of a graph as flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import ModelError, UnsupportedError, did_you_mean
from hylift.graph.domains import Domain, boolean
from hylift.graph.name_blocks import MAX_SUGGESTIONS, Atoms, NameBlock, split_atom
from hylift.graph.names import Names
from hylift.numerics.segments import inverse


@dataclass(frozen=True, slots=True, eq=False)
class Variables:
    """Domains, multiplicities and names; a variable is an index into each."""

    domains: tuple[Domain, ...]
    domain_id: NDArray[np.int32]  # (variable,): index into `domains`
    names: Names
    multiplicity: NDArray[np.float64]  # (variable,): ground variables each one stands for

    def __post_init__(self) -> None:
        set_frozen(
            self,
            domain_id=(self.domain_id, np.int32),
            multiplicity=(self.multiplicity, np.float64),
        )
        domain_id, multiplicity = self.domain_id, self.multiplicity
        sizes = {len(domain_id), len(self.names), len(multiplicity)}
        if len(sizes) > 1 or domain_id.ndim != 1 or multiplicity.ndim != 1:
            raise ModelError(
                f"{len(domain_id)} domains, {len(self.names)} names and {len(multiplicity)} "
                "multiplicities: there must be one of each per variable"
            )
        wrong = (domain_id < 0) | (domain_id >= len(self.domains))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ModelError(
                f"variable '{self.names[at]}' has domain {domain_id[at]}, "
                f"but there are {len(self.domains)} domains"
            )
        check_multiplicity(multiplicity, lambda at: f"variable '{self.names[at]}'")

    @classmethod
    def uniform(cls, domain: Domain, count: int, names: Names | None = None) -> Variables:
        """`count` variables of one domain, named x0, x1, … unless names are given."""
        domain_id = np.zeros(count, dtype=np.int32)
        return cls((domain,), domain_id, names or Names.numbered(count), np.ones(count))

    @classmethod
    def named(cls, domains: Mapping[str, Domain]) -> Variables:
        """A few variables by name."""
        return cls.of(list(domains.values()), Names.listed(domains))

    @classmethod
    def in_blocks(cls, blocks: Sequence[tuple[NameBlock, Domain]]) -> Variables:
        """One domain per block of names, such as all atoms of a predicate.

        The ids of a block start at its entry in `names.offsets`.
        """
        names = Names(tuple(block for block, _ in blocks))
        distinct = {d: place for place, d in enumerate(dict.fromkeys(d for _, d in blocks))}
        sizes = [len(block) for block, _ in blocks]
        domain_id = np.repeat([distinct[domain] for _, domain in blocks], sizes)
        return cls(tuple(distinct), domain_id.astype(np.int32), names, np.ones(len(names)))

    @classmethod
    def of(cls, domains: Sequence[Domain], names: Names) -> Variables:
        """One domain per variable."""
        for domain in domains:
            if not isinstance(domain, Domain):
                raise ModelError(
                    f"a domain is boolean, real, interval(…) or categorical(…), not {domain!r}"
                )
        distinct = {domain: place for place, domain in enumerate(dict.fromkeys(domains))}
        domain_id = np.array([distinct[domain] for domain in domains], dtype=np.int32)
        return cls(tuple(distinct), domain_id, names, np.ones(len(domain_id)))

    def __len__(self) -> int:
        return len(self.domain_id)

    @property
    def num_states(self) -> NDArray[np.int32]:
        """(variable,): number of states; 0 for a real."""
        return self._spread([len(domain.states or ()) for domain in self.domains], np.int32)

    @property
    def lower(self) -> NDArray[np.float64]:
        """(variable,): lower bound of a real."""
        return self._spread([domain.lower for domain in self.domains], np.float64)

    @property
    def upper(self) -> NDArray[np.float64]:
        """(variable,): upper bound of a real."""
        return self._spread([domain.upper for domain in self.domains], np.float64)

    @property
    def domain_number(self) -> NDArray[np.int32]:
        """(variable,): the same for equal domains, even where `domains` has one twice."""
        numbers = {domain: place for place, domain in enumerate(dict.fromkeys(self.domains))}
        return self._spread([numbers[domain] for domain in self.domains], np.int32)

    def _spread(self, per_domain: list[Any], dtype: Any) -> NDArray[Any]:
        return np.array(per_domain, dtype=dtype)[self.domain_id]

    def domain(self, variable: int) -> Domain:
        return self.domains[self.domain_id[variable]]

    def id(self, name: str) -> int:
        """The id of one name."""
        return int(self.ids([name])[0])

    def ids(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The ids of names; an unknown one is an error that suggests what to ask for."""
        return self.names.ids(names, self._without_state)

    def matching(
        self, patterns: str | Iterable[str], observed: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Ids of what names, predicates and patterns with * and ? stand for, in their order.

        A predicate stands for its atoms that are not `observed` (variable,), or for all if all are;
        names and patterns include what is observed. An unknown name and a pattern without a match
        are errors.
        """
        return self.names.matching(patterns, observed, self._without_state)

    def check_alone(self, ids: NDArray[Any], what: str) -> None:
        """Raise if one of these stands for a class of atoms, and `what` needs each by itself."""
        several = ids[self.multiplicity[ids] > 1] if self.names.has_members else ids[:0]
        if len(several):
            at = int(several[0])
            raise UnsupportedError(
                f"{what} needs each atom by itself, but '{self.names[at]}' stands for a class of "
                f"{self.multiplicity[at]:,.0f} atoms in this lifted graph: use the ground graph"
            )

    def _without_state(self, name: str) -> str:
        """A hint for `Soil(2,chalk)`, or `chlak`, where `Soil(2)` has the state chalk."""
        predicate, words = split_atom(name)
        if not words:
            return ""
        own = Names((Atoms(predicate, tuple([word] for word in words[:-1])),))[0]
        found = int(self.names.find([own])[0])
        domain = self.domain(found) if found >= 0 else boolean
        states, last = domain.states or (), words[-1]
        is_state = last in states or did_you_mean(last, states[:MAX_SUGGESTIONS])
        if domain == boolean or not is_state:
            return ""
        return f" A state is not part of a name: '{own}' is the variable; {domain.states_text}."

    def places_in(
        self, known: Variables, among: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """(variable,): the id of the variable of the same name among the known ones, or its
        position among some of their ids; -1 if there is none, or one with another number of
        states."""
        at = np.arange(len(self))
        if known is not self:
            found = pc.index_in(self.names.render(), value_set=known.names.render())
            at = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
            if len(known):
                at = np.where(known.num_states[at] == self.num_states, at, -1)
        return at if among is None else np.append(inverse(among, len(known)), -1)[at]

    def take(self, ids: NDArray[Any]) -> Variables:
        """Some of the variables, given by increasing ids."""
        return Variables(
            self.domains, self.domain_id[ids], self.names.take(ids), self.multiplicity[ids]
        )

    def with_more(
        self, domains: Iterable[Domain], domain_id: NDArray[Any], names: Names
    ) -> Variables:
        """These variables, and then others; domain_id: (other variable,), among `domains`."""
        return Variables(
            (*self.domains, *domains),
            np.concatenate([self.domain_id, len(self.domains) + domain_id]).astype(np.int32),
            Names((*self.names.blocks, *names.blocks)),
            np.concatenate([self.multiplicity, np.ones(len(domain_id))]),
        )


def without_repeats(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ids in their order, each where it comes first."""
    _, first = np.unique(ids, return_index=True)
    return ids[np.sort(first)]


def freeze(values: Any, dtype: Any) -> NDArray[Any]:
    """`values` as a read-only, contiguous array of `dtype`, copied only where it must be."""
    array = np.asarray(values)
    if np.issubdtype(dtype, np.integer) and array.size:
        info = np.iinfo(dtype)
        if not np.issubdtype(array.dtype, np.integer):
            raise ModelError(f"ids must be integers, not {array.dtype}")
        if array.dtype != dtype and (array.min() < info.min or array.max() > info.max):
            raise ModelError(f"ids must fit {np.dtype(dtype).name}")
    frozen = np.ascontiguousarray(array, dtype=dtype).view()
    frozen.flags.writeable = False
    return frozen


def set_frozen(owner: object, **arrays: tuple[Any, Any]) -> None:
    """Set attributes of a frozen value to read-only arrays; arrays: values and dtype of each."""
    for name, (values, dtype) in arrays.items():
        object.__setattr__(owner, name, freeze(values, dtype))


def check_multiplicity(multiplicity: NDArray[np.float64], named: Any) -> None:
    """Raises unless all multiplicities are positive and finite; `named(index)` says whose."""
    wrong = ~((multiplicity > 0) & np.isfinite(multiplicity))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ModelError(f"{named(at)} has multiplicity {multiplicity[at]}: it must be positive")
