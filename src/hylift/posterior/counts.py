"""Expected statistics of rules: the sums of their formulas over all groundings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import IntractableError, UnsupportedError
from hylift.graph import Evidence, FactorGraph, FactorGroup, Variables
from hylift.graph.condition import Observed
from hylift.graph.factor_graph import RuleInfo, Rules
from hylift.numerics.segments import first_equal, number_rows
from hylift.posterior.draws import Draws
from hylift.posterior.mapped import Joint
from hylift.posterior.mixture import NODES, Mixture
from hylift.potentials.base import QuadraticForm, along_axis, expected_log_value
from hylift.rewrite.centred import is_quadratic, shifted
from hylift.rewrite.kinds import by_states, in_standard_form, with_tables
from hylift.words import method_call, worded

if TYPE_CHECKING:
    from hylift.posterior.posterior import Posterior


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """The sum of a rule over its groundings: a constant, and factors of hidden variables."""

    rule: RuleInfo
    groups: tuple[FactorGroup, ...]
    """Their scopes are positions among the hidden variables; reals are less their origin."""
    constant: float

    def total(self, expected: float) -> float:
        """The statistic, where the log-values of `groups` add up to this."""
        return (expected + self.constant) / self.rule.scale + self.rule.decided


def statistics(
    graph: FactorGraph,
    evidence: Evidence,
    hidden: NDArray[np.int64],
    origin: NDArray[np.float64] | None = None,
) -> list[Statistic]:
    """The statistic of each rule of a graph, or of each group where it has no rules.

    hidden: (hidden variable,): ids in the graph of what is not observed; origin: (hidden
    variable,): what their reals are measured from, which is 0 of those in functions
    """
    rules = graph.rules or Rules.of_groups(graph.groups)
    rules = rules.conditioned(evidence, hidden)
    assert rules.variable is not None
    observed = Observed.of(_num_variables(rules), rules.absorbed)
    position = np.zeros(len(observed.flag), dtype=np.int32)
    position[rules.variable] = np.arange(len(hidden), dtype=np.int32)
    at = observed.value.copy()
    if origin is not None:
        at[rules.variable] = origin
    variables = graph.variables.take(hidden)
    return [
        _statistic(variables, _parts(rule, observed, position, at, origin), rule)
        for rule in rules.infos
    ]


def _num_variables(rules: Rules) -> int:
    """Variables that the rules are about."""
    assert rules.variable is not None
    scopes = [group.scope for rule in rules.infos for group in rule.groups]
    ids: list[NDArray[Any]] = [rules.variable, rules.absorbed.variable, *scopes]
    return 1 + max(int(some.max(initial=-1)) for some in ids)


def _parts(
    rule: RuleInfo,
    observed: Observed,
    position: NDArray[np.int32],
    at: NDArray[np.float64],
    origin: NDArray[np.float64] | None,
) -> Iterator[FactorGroup]:
    """The factors of a rule with evidence absorbed, some without slots.

    at: (variable of the rules,), the origin of hidden reals, and observed values
    """
    for group in rule.groups:
        groups: tuple[FactorGroup, ...] = (group,)
        seen, is_early = observed, origin is not None and is_quadratic(group)
        if is_early:  # before evidence is absorbed, as large values cancel each other
            groups, value = shifted([group], at), observed.value.copy()
            value[group.reals] = 0.0
            seen = replace(observed, value=value)
        for own in groups:
            for slots, factors in seen.patterns(own):
                part = seen.reduce(own, slots, factors, position)
                if origin is None or is_early or not is_quadratic(part):
                    yield part
                else:
                    yield from shifted([part], origin)


def _statistic(variables: Variables, found: Iterable[FactorGroup], rule: RuleInfo) -> Statistic:
    constant, parts = 0.0, []
    for part in found:
        if part.arity:
            parts.append(part)
        else:
            constant += part.log_sum(np.zeros(0))
    alone = FactorGraph.unchecked(variables, parts, Evidence.none(), 0.0)
    closed = with_tables(in_standard_form(alone))
    groups = [
        part
        for group in closed.groups
        for part in (
            [group] if group.potential.quadratic() else by_states(group, variables.num_states)
        )
    ]
    return Statistic(rule, tuple(groups), constant)


FloatArray = NDArray[np.float64]

Expect = Callable[[Sequence[Sequence[FactorGroup]]], FloatArray]
"""The expected sum of the log-values of each set of groups, of reals less their origin."""

BLOCK = 1 << 20
"""Numbers of the largest temporary."""
MOST_POINTS = 1 << 20
"""Nodes and states of one factor that a function is summed over."""


def expected_counts(posterior: Posterior) -> pa.Table:
    """The table of `Posterior.expected_counts`."""
    target, draws, mixture = posterior.target, posterior.draws, posterior.mixture
    if target is None:
        raise UnsupportedError(
            "expected_counts() needs the model, which is not saved with a posterior: infer again"
        )
    hidden, origin = np.flatnonzero(~posterior.observed), target.origin
    if origin is not None:
        mixture = mixture and mixture.shifted(-origin[mixture.hidden])
        draws = draws and replace(draws, values=draws.values - origin[draws.ids])
        origin = origin[hidden]
    found = statistics(target.graph, target.evidence, hidden, origin)
    groups = [one.groups for one in found]
    if mixture is not None:
        sums = np.array([_by_joint(mixture, each) for each in groups])
    elif draws is not None:
        sums = np.array([sum(_by_draws(draws, g) for g in each) for each in groups])
    elif target.expect is not None:
        sums = target.expect(groups)
    else:
        posterior.known_marginals()
        raise UnsupportedError(
            f"{posterior.solution.method} has no joint distribution of the variables of a factor, "
            "which expected_counts() needs",
            worded(
                "use ",
                method_call("Exact"),
                ", ",
                method_call("BVI"),
                " or ",
                method_call("Gibbs"),
            ),
        )
    expected = [one.total(float(s)) for one, s in zip(found, sums, strict=True)]
    statistic = ["formula" if one.rule.weight is not None else "log-value" for one in found]
    return pa.table(
        {
            "rule": pa.array([one.rule.text for one in found], pa.string()),
            "weight": pa.array([one.rule.weight for one in found], pa.float64()),
            "statistic": pa.array(statistic, pa.string()),
            "expected": pa.array(expected, pa.float64()),
        }
    )


def _by_draws(draws: Draws, group: FactorGroup) -> float:
    """The sum of the log-values of a group, averaged over all draws."""
    values = draws.resampled().values.reshape(-1, draws.values.shape[-1])
    width, total = max(1, BLOCK // len(values)), 0.0
    for start in range(0, len(group), width):
        some = group.take(np.arange(start, min(start + width, len(group))))
        slots = [values[:, variable].T for variable in some.scope.T]
        means = some.potential.log_value(some.row[:, None], slots).mean(axis=1)
        total += float(some.multiplicity @ means)
    return total


def _by_joint(joint: Joint, groups: Sequence[FactorGroup]) -> float:
    """The expected sum of the log-values of groups."""
    if isinstance(joint, Mixture):
        return sum(_by_mixture(joint, group) for group in groups)
    inside, constant = joint.factors_inside(groups)
    return constant + sum(_by_mixture(joint.inner, group) for group in inside)


def _by_mixture(mixture: Mixture, group: FactorGroup) -> float:
    """The expected sum of the log-values of a group."""
    if not len(group):
        return 0.0
    # Factors of one row over the same classes, in one part, have one expectation.
    classes, part = mixture.variable_to_class[group.scope], mixture.parts()[group.scope]
    columns = np.column_stack([group.row, classes, part]).astype(np.int64).T
    number, example = number_rows(*columns)
    times = np.bincount(number, group.multiplicity)
    form, total = group.potential.quadratic(), 0.0
    points = _num_points(mixture, group)
    width = max(1, BLOCK // points)
    for start in range(0, len(example), width):
        some = group.take(example[start : start + width])
        for weights, choice in _choices(mixture, part[example[start : start + width]]):
            compute = _closed if form else _of_function
            by_component = compute(mixture, some, form, choice)
            total += float(times[start : start + width] @ (by_component * weights).sum(axis=1))
    return total


def _choices(
    mixture: Mixture, part: NDArray[np.int32]
) -> Iterator[tuple[FloatArray, NDArray[np.int64] | None]]:
    """Weights (factor, component) and components (factor, slot, component) of the slots of factors:
    as many as are needed to combine the components of different parts in all ways.

    part: (factor, slot)
    """
    size, weights = mixture.num_components, mixture.part_weights
    if not part.shape[1] or (part == part[:, :1]).all():
        own = weights[part[:, 0]] if part.shape[1] else np.full((len(part), size), 1.0 / size)
        yield own, None
        return
    # The number of each slot's part among those of the factor, in the order of slots.
    first = first_equal(part)
    is_first = first == np.arange(part.shape[1])
    rank = np.take_along_axis(np.cumsum(is_first, axis=1) - 1, first, axis=1)
    for shift in product(range(size), repeat=int(rank.max())):
        by_rank = np.array([0, *shift])
        choice = (np.arange(size) + by_rank[rank][:, :, None]) % size
        own = np.take_along_axis(weights[part], choice, axis=2)
        # A factor with fewer parts than others meets each of its choices several times.
        repeats = float(size) ** (rank.max() - rank.max(axis=1, keepdims=True))
        yield np.where(is_first[:, :, None], own, 1.0).prod(axis=1) / repeats, choice


def _chosen(values: FloatArray, choice: NDArray[np.int64] | None, slot: int) -> FloatArray:
    """(factor, component, …): the values of the components that were chosen for a slot."""
    if choice is None:
        return values
    index = choice[:, slot].reshape(*choice[:, slot].shape, *(1,) * (values.ndim - 2))
    return np.take_along_axis(values, index, axis=1)


def _num_points(mixture: Mixture, group: FactorGroup) -> int:
    """Joint states and nodes of one factor, at most."""
    layout = mixture.layout
    size = layout.size[mixture.variable_to_class[group.scope]].max(axis=0, initial=1)
    is_real = np.arange(group.arity) >= group.potential.num_discrete_slots
    nodes = 1 if group.potential.quadratic() else NODES
    points = float(np.prod(np.where(is_real, nodes, size), dtype=np.float64))
    if points > MOST_POINTS:
        raise IntractableError(
            f"the expectation of a function of {group.named()} is a sum over {points:.3g} points: "
            "it has too many variables"
        )
    return int(points)


def _closed(
    mixture: Mixture,
    group: FactorGroup,
    form: QuadraticForm | None,
    choice: NDArray[np.int64] | None,
) -> FloatArray:
    """(factor, component): expected log-values of quadratic forms, the slots being independent."""
    assert form is not None
    split, shape = group.potential.num_discrete_slots, (len(group), mixture.num_components)
    share = np.ones((*shape, 1))
    for slot in range(split):
        own = _chosen(_nodes(mixture, group.scope[:, slot])[1], choice, slot)
        share = (share[..., None] * own[:, :, None]).reshape(*shape, -1)
    A, b, c = (values[group.row] for values in form)  # (factor, joint state, …)
    moments = [
        tuple(
            _chosen(moment, choice, slot)
            for moment in mixture.moments(mixture.hidden[group.scope[:, slot]])
        )
        for slot in range(split, group.arity)
    ]
    value = np.broadcast_to(c[:, None], share.shape)
    for i, (mean, var) in enumerate(moments):
        slope = b[:, None, :, i] + A[:, None, :, i, i] * mean[..., None]
        for j in range(i):
            slope = slope + 2 * A[:, None, :, i, j] * moments[j][0][..., None]
        value = value + slope * mean[..., None] + A[:, None, :, i, i] * var[..., None]
    return _weighted(share, value).sum(axis=-1)


def _of_function(
    mixture: Mixture,
    group: FactorGroup,
    form: QuadraticForm | None,
    choice: NDArray[np.int64] | None,
) -> FloatArray:
    """(factor, component): expected log-values in the potential's own closed form, where it has
    one and all reals are Gaussian, else by quadrature."""
    classes = mixture.variable_to_class[group.scope]
    slots = mixture.layout.moments_or_probs(classes, mixture.entries)
    if slots is None:
        return _by_nodes(mixture, group, choice)
    shape = (len(group), mixture.num_components, -1)
    slots = [
        _chosen(own.reshape(shape), choice, slot).reshape(own.shape)
        for slot, own in enumerate(slots)
    ]
    row = np.repeat(group.row, mixture.num_components)
    found = expected_log_value(group.potential, row, slots)
    if found is None:
        return _by_nodes(mixture, group, choice)
    return found.value.reshape(len(group), -1)


def _by_nodes(mixture: Mixture, group: FactorGroup, choice: NDArray[np.int64] | None) -> FloatArray:
    """(factor, component): expected log-values of functions, on states and Gauss nodes."""
    columns = [
        [_chosen(one, choice, slot) for one in _nodes(mixture, variables)]
        for slot, variables in enumerate(group.scope.T)
    ]
    found = np.empty((len(group), mixture.num_components))
    for component in range(mixture.num_components):
        share, slots = np.ones((len(group),) + (1,) * group.arity), []
        for slot, (nodes, shares) in enumerate(columns):
            along = along_axis(slot, group.arity, len(group))
            slots.append(nodes[:, component].reshape(along))
            share = share * shares[:, component].reshape(along)
        row = group.row.reshape((-1,) + (1,) * group.arity)
        values = group.potential.log_value(row, slots)
        found[:, component] = _weighted(share, values).reshape(len(group), -1).sum(axis=1)
    return found


def _nodes(mixture: Mixture, variables: NDArray[np.int32]) -> tuple[FloatArray, FloatArray]:
    """(factor, component, node): states or nodes of one variable per factor, and their shares."""
    present, place = np.unique(variables, return_inverse=True)
    rules = mixture.nodes(mixture.hidden[present])
    nodes, shares = (np.stack(values) for values in zip(*rules, strict=True))
    return nodes[place], shares[place]


def _weighted(share: FloatArray, values: FloatArray) -> FloatArray:
    """share * values, where what has no share counts for nothing, even -inf."""
    return share * np.where(share > 0, values, 0.0)
