"""The factor graph: made by grounding and files, shrunk by lifting, taken by solvers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph.domains import Domain
from hylift.graph.evidence import Evidence
from hylift.graph.factors import FactorGroup
from hylift.graph.variables import Variables
from hylift.potentials import ANY_STATES, REAL, Potential
from hylift.words import counted, shortened_notes


@dataclass(frozen=True, slots=True, eq=False)
class RuleInfo:
    """A rule with its groundings. Its statistic is the sum of its formula over all of them."""

    text: str
    weight: float | None
    """None for hard rules, weights per constant, and formulas that are log-values themselves: the
    statistic is then the sum of log-values."""
    groups: tuple[FactorGroup, ...]
    """Factors whose log-values are `scale` times the formula."""
    scale: float = 1.0
    decided: float = 0.0
    """The statistic of the groundings that evidence had decided before there were factors."""


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The rules of a graph, over the variables it had when they were made."""

    infos: tuple[RuleInfo, ...]
    absorbed: Evidence
    """Values of these variables that were observed since, and left the graph."""
    variable: NDArray[np.int64] | None = None
    """(variable of the graph,): which of these it is; None where they are the same."""

    @classmethod
    def of(cls, infos: tuple[RuleInfo, ...]) -> Rules:
        return cls(infos, Evidence.none())

    @classmethod
    def of_groups(cls, groups: tuple[FactorGroup, ...]) -> Rules:
        """One rule without weight per group, for graphs that do not come from a model."""
        named = enumerate(groups)
        return cls.of(tuple(RuleInfo(g.label or f"group {n}", None, (g,)) for n, g in named))

    def conditioned(self, evidence: Evidence, hidden: NDArray[np.int64]) -> Rules:
        """The rules of the graph of some of the variables, the others being observed."""
        hard = evidence.is_hard
        seen = Evidence.of(self.ids(evidence.variable[hard]), evidence.value[hard])
        return replace(self, absorbed=self.absorbed.joined(seen), variable=self.ids(hidden))

    def ids(self, variable: NDArray[np.integer]) -> NDArray[np.int64]:
        """Variables of the graph by their ids in the rules."""
        own = variable if self.variable is None else self.variable[variable]
        return np.asarray(own, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class SizeEstimate:
    """Numbers of variables and factors, and the memory that their arrays take."""

    num_variables: int
    num_factors: int
    num_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.num_variables:,} variables, {self.num_factors:,} factors, "
            f"{bytes_text(self.num_bytes)}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class FactorGraph:
    """Variables, groups of factors over them, and evidence, as immutable flat arrays.

    Given arrays are viewed, not copied: do not mutate them afterwards.
    A lifted graph is a factor graph whose multiplicities are not all 1.
    """

    variables: Variables
    groups: tuple[FactorGroup, ...]
    evidence: Evidence = field(default_factory=Evidence.none)
    log_constant: float = 0.0
    """Sum of the factors that evidence has turned into numbers."""
    rules: Rules | None = None
    """The rules of a model, where the factors come from one."""
    notes: tuple[str, ...] = ()
    """On evidence that was left out, or may have been meant otherwise."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(self.groups))
        _check_constant(self.log_constant)
        num_states = self.variables.num_states
        for group in self.groups:
            _check_scope(group, self.variables, num_states)
        self.evidence.check(self.variables)

    @classmethod
    def build(
        cls,
        variables: Mapping[str, Domain],
        factors: Iterable[tuple[Potential, Sequence[str] | Sequence[Sequence[str]]]],
    ) -> FactorGraph:
        """A small graph by names: each potential with a scope, or with a list of scopes."""
        columns = Variables.named(variables)
        position = {name: place for place, name in enumerate(variables)}
        groups = []
        for number, (potential, names) in enumerate(factors):
            arity = len(potential.slot_states)
            scopes = _as_scopes(names, arity)
            for name in (name for scope in scopes for name in scope):
                if name not in position:
                    columns.names.id(name)  # raises, with the closest name
            ids = [[position[name] for name in scope] for scope in scopes]
            if len({len(scope) for scope in ids}) > 1:
                raise ModelError(f"the scopes of factors {number} have different lengths: {scopes}")
            scope = np.array(ids, dtype=np.int32).reshape(len(ids), len(ids[0]) if ids else arity)
            groups.append(FactorGroup(potential, scope, label=f"factors {number}"))
        return cls(columns, tuple(groups))

    @classmethod
    def unchecked(
        cls,
        variables: Variables,
        groups: Iterable[FactorGroup],
        evidence: Evidence,
        log_constant: float,
        rules: Rules | None = None,
        notes: tuple[str, ...] = (),
    ) -> FactorGraph:
        """A graph of parts that are known to fit, without checks."""
        _check_constant(log_constant)
        graph = object.__new__(cls)
        object.__setattr__(graph, "variables", variables)
        object.__setattr__(graph, "groups", tuple(groups))
        object.__setattr__(graph, "evidence", evidence)
        object.__setattr__(graph, "log_constant", log_constant)
        object.__setattr__(graph, "rules", rules)
        object.__setattr__(graph, "notes", notes)
        return graph

    def with_groups(
        self, groups: Iterable[FactorGroup], log_constant: float | None = None
    ) -> FactorGraph:
        """The graph with other factors, and another constant where one is given, without checks."""
        constant = self.log_constant if log_constant is None else log_constant
        return FactorGraph.unchecked(self.variables, groups, self.evidence, constant, self.rules)

    def with_notes(self, notes: tuple[str, ...]) -> FactorGraph:
        """The graph with other notes."""
        parts = self.variables, self.groups, self.evidence, self.log_constant, self.rules
        return FactorGraph.unchecked(*parts, notes)

    def of_some(
        self, is_kept: NDArray[np.bool_], groups: Iterable[FactorGroup], log_constant: float
    ) -> FactorGraph:
        """The graph of some variables (variable,), among them all observed ones, with factors whose
        scopes are in this graph."""
        new_id = np.cumsum(is_kept, dtype=np.int32) - np.int32(1)
        evidence = self.evidence
        return FactorGraph.unchecked(
            self.variables.take(np.flatnonzero(is_kept)),
            [group.changed(scope=new_id[group.scope]) for group in groups],
            Evidence(new_id[evidence.variable], evidence.value, evidence.var),
            log_constant,
        )

    @property
    def num_variables(self) -> int:
        return len(self.variables.domain_id)

    @property
    def is_ground(self) -> bool:
        """True if no variable stands for several."""
        return bool((self.variables.multiplicity == 1).all())

    @property
    def is_hidden(self) -> NDArray[np.bool_]:
        """(variable,): whether its value is unknown, or known with an error only."""
        hidden = np.ones(self.num_variables, dtype=bool)
        hidden[self.evidence.variable[self.evidence.is_hard]] = False
        return hidden

    @property
    def num_factors(self) -> int:
        return sum(len(group) for group in self.groups)

    @property
    def degree(self) -> NDArray[np.float64]:
        """(variable,): factors at each ground variable, on average over those it stands for.

        1 - degree is the variable's counting number in the Bethe approximation.
        """
        total = np.zeros(self.num_variables)
        for group in self.groups:
            for slot in range(group.arity):
                total += np.bincount(
                    group.scope[:, slot], group.multiplicity, minlength=self.num_variables
                )
        return total / self.variables.multiplicity

    def size_estimate(self) -> SizeEstimate:
        """Numbers of variables and factors, and the memory of their arrays, without those of the
        parameters of potentials and of names."""
        per_factor = (g.scope.nbytes + g.row.nbytes + g.multiplicity.nbytes for g in self.groups)
        variables = self.variables.domain_id.nbytes + self.variables.multiplicity.nbytes
        observed = self.evidence.variable.nbytes + 2 * self.evidence.value.nbytes
        num_bytes = sum(per_factor) + variables + observed
        return SizeEstimate(self.num_variables, self.num_factors, num_bytes)

    def observe(self, observed: Mapping[str, object] | Evidence) -> FactorGraph:
        """The graph with more evidence: a mapping from names, or `Evidence` by ids.

        A mapping's values are states (`True`, `"red"`, 2), numbers, or `Soft(value, var)`. Earlier
        observations of the same variables are replaced.
        """
        if not isinstance(observed, Evidence):
            observed = Evidence.from_mapping(self.variables, observed)
            self.variables.check_alone(observed.variable, "evidence")
        observed.check(self.variables)
        evidence = self.evidence.joined(observed)
        return FactorGraph.unchecked(
            self.variables, self.groups, evidence, self.log_constant, self.rules, self.notes
        )

    def condition(self) -> FactorGraph:
        """The graph of the hidden variables, with all evidence absorbed into its factors."""
        from hylift.graph.condition import Conditioned

        return Conditioned.of(self).graph

    def log_density(self, values: NDArray[np.float64]) -> float:
        """The unnormalised log-density at an assignment (variable,) of states and reals.

        Of the factors alone: evidence is ignored before `condition()`.
        """
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (self.num_variables,):
            raise ModelError(
                f"an assignment to {self.num_variables} variables must have as many values, "
                f"not the shape {values.shape}"
            )
        num_states = self.variables.num_states
        state = np.where(num_states > 0, values, 0.0)
        wrong = ~((state == np.floor(state)) & (state >= 0) & (state < np.maximum(num_states, 1)))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ModelError(
                f"'{self.variables.names[at]}' has states 0 to {num_states[at] - 1}, "
                f"not {values[at]:g}"
            )
        total = self.log_constant
        for group in self.groups:
            total += group.log_sum(values)
        return total

    def __repr__(self) -> str:
        variables = counted(self.num_variables, "variable")
        factors = counted(self.num_factors, "factor")
        if not self.is_ground:
            variables += f" for {self.variables.multiplicity.sum():,.0f}"
            factors += f" for {sum(group.multiplicity.sum() for group in self.groups):,.0f}"
        groups = counted(len(self.groups), "group")
        told = f"{self.evidence.counts}{shortened_notes(self.notes)}"
        return f"FactorGraph({variables}, {factors} in {groups}, {told})"


def bytes_text(num_bytes: float) -> str:
    """`512 bytes`, `1.5 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}" if unit == "bytes" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:,.1f} TB"


def _check_constant(log_constant: float) -> None:
    if not np.isfinite(log_constant):
        raise ModelError(f"the constant of a graph must be finite, not {log_constant}")


def _check_scope(group: FactorGroup, variables: Variables, num_states: NDArray[np.int32]) -> None:
    scope, num_variables = group.scope, len(variables)
    if not scope.size:
        return
    if scope.min() < 0 or scope.max() >= num_variables:
        at, slot = np.argwhere((scope < 0) | (scope >= num_variables))[0]
        raise ModelError(
            f"{group.named(at)}: slot {slot} is variable {scope[at, slot]}, "
            f"but the graph has {num_variables} variables"
        )
    for slot, wanted in enumerate(group.potential.slot_states):
        found = num_states[scope[:, slot]]
        wrong = found == REAL if wanted == ANY_STATES else found != wanted
        if wrong.any():
            at = int(np.argmax(wrong))
            variable = int(scope[at, slot])
            raise ModelError(
                f"{group.named(at)}: slot {slot} takes {_kind(wanted)}, "
                f"but '{variables.names[variable]}' is {_kind(int(num_states[variable]))}"
            )
    _check_repeats(group, variables)


def _check_repeats(group: FactorGroup, variables: Variables) -> None:
    """Raises if a factor has a variable twice; only a class of several may be there again."""
    for slot in range(group.arity):
        for earlier in range(slot):
            same = group.scope[:, slot] == group.scope[:, earlier]
            if not same.any():
                continue
            same &= variables.multiplicity[group.scope[:, slot]] == 1
            if same.any():
                at = int(np.argmax(same))
                name = variables.names[int(group.scope[at, slot])]
                raise ModelError(
                    f"{group.named(at)}: '{name}' is in slots {earlier} and {slot}; "
                    "a factor may have a variable only once"
                )


def _kind(num_states: int) -> str:
    if num_states == ANY_STATES:
        return "a discrete variable"
    return "a real" if num_states == REAL else f"a variable of {num_states} states"


def _as_scopes(
    names: Sequence[str] | Sequence[Sequence[str]], arity: int
) -> Sequence[Sequence[str]]:
    """A list of scopes, from one scope or from several."""
    if not names and arity:
        return []
    if isinstance(names, str):
        return [[names]]
    if all(isinstance(name, str) for name in names):
        return [[str(name) for name in names]]
    return [[name] if isinstance(name, str) else name for name in names]
