"""The trust in a fitted mixture: the kind of its log Z, and notes for the user."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.components.gaussian import LEAK
from hylift.graph import Evidence, FactorGraph, FactorGroup
from hylift.inference.prepared import View
from hylift.inference.terms import has_repeats
from hylift.inference.variational.fitted import Fit, Settings
from hylift.inference.variational.functions import needs_quadrature
from hylift.inference.variational.objective import ENTROPY_BOUNDS, Objective
from hylift.inference.variational.problem import FloatArray, mass_outside
from hylift.numerics.sparse import SymmetricFactors
from hylift.posterior import Mixture
from hylift.posterior.answers import Kind, LogPartition
from hylift.potentials import ConditionalQuadratic
from hylift.potentials.base import QuadraticForm
from hylift.proper.gaussian import LARGEST_FACTORISED, GaussianForm
from hylift.rewrite.leaves import ConstantLeaves, Remaining
from hylift.words import counted, doubt, method_call, option, worded

LEAKS = 1e-9
"""Mass of a Gaussian beyond the bounds of its real that still counts as none."""
SEPARATED = -1000.0
"""Coefficient of the mixing entropy from which on Bethe weights are not to be trusted."""
ALONE = 0.999
"""Weight from which on a component is the only one."""
MOST_NUMBERS = 20_000_000
"""Of the averaged quadratics; larger graphs are not looked at."""
MOST_LOOKED = 64
"""Reals whose deviations are compared: a solve each."""
TOO_SMALL = 1.25
"""Ratio of deviations from which on a note warns the user."""


def kind_and_notes(settings: Settings, fit: Fit, mixture: Mixture) -> tuple[Kind, bool, list[str]]:
    """The kind of -F as a statement about log Z, whether bounds on the entropy of the mixture prove
    one on log Z, and what the user should know."""
    notes: list[str] = []
    kind: Kind = "lower bound"
    beyond = mass_outside(mixture.layout, mixture.class_weights(), mixture.entries)
    leak = float(beyond.max(initial=0.0))
    by_quadrature = bool(fit.problem.functions) and needs_quadrature(fit.problem)
    if settings.needs_grids:
        on_forest = fit.view.prepared.is_forest
        has_reals = len(fit.problem.layout.reals) > 0
        if on_forest and has_reals and leak <= LEAKS and not by_quadrature:
            notes.append("The graph is a forest: log Z is at least this, up to the error stated.")
        if has_reals or not on_forest:
            kind = "estimate"
        _note_separation(fit, notes)
        _note_repeats(fit, notes)
    if by_quadrature:
        kind = "estimate"
        notes.append("Functions of your own are integrated by quadrature, so log Z is an estimate.")
    if leak > LEAKS:
        kind = "estimate"
        notes.append(
            worded(
                "Gaussian components reach beyond the bounds of their reals, by a mass of up to "
                f"{leak:.2g}, so log Z is an estimate; ",
                option("reals", "beta"),
                *((" without ", option("joint")) if fit.joint is not None else ()),
                " keeps them inside.",
            )
        )
    if not fit.is_feasible:
        kind = "estimate"
        notes.append(
            doubt(
                "The mixture does not satisfy all hard constraints, which count with a large "
                "finite weight here; the MAP assignment does where one could be found. More "
                "components or restarts may help."
            )
        )
    return kind, leak <= LEAKS and fit.is_feasible and not by_quadrature, notes


def kind_with_leaves(
    graph: FactorGraph,
    small: Remaining[ConstantLeaves],
    lost: FloatArray,
    kind: Kind,
    notes: list[str],
) -> Kind:
    """The kind of log Z with what was integrated out; says so, and what that has beyond bounds.

    lost: (variable,), the mass beyond bounds
    """
    names = graph.variables.names
    first, count = (
        names[int(small.eliminated[-1].variables[0])],
        graph.num_variables - len(small.kept),
    )
    were = "was" if count == 1 else "were"
    notes.append(
        f"{counted(count, 'real')} that nothing else depends on, such as '{first}', {were} "
        "integrated out first."
    )
    worst = int(np.argmax(lost))
    if not lost[worst] > LEAKS:
        return kind
    if lost[worst] > LEAK:
        notes.append(
            doubt(
                f"Ran out of time before enforcing the bounds of '{names[worst]}', which matter: "
                "it was integrated out as if it had none, and its marginal reaches beyond them."
            )
        )
    else:
        notes.append(
            f"Those among them that have bounds were integrated out as if they had none: "
            f"'{names[worst]}' has {lost[worst]:.2g} of its mass beyond, so log Z is an estimate."
        )
    return "estimate"


def log_partition_of(
    settings: Settings, fit: Fit, kind: Kind, notes: list[str], *, has_bound: bool
) -> LogPartition:
    """log Z by a fitted mixture, with the best bound that it proves; notes that beside an
    estimate."""
    is_known = settings.components == 1 and settings.entropy != "jensen"
    bound = -np.inf
    if has_bound and fit.joint is None and not is_known:
        bound = max(
            -float(Objective(fit.problem, entropy, "final", np.inf).evaluate(fit.q).value[0])
            for entropy in ENTROPY_BOUNDS
        )
    if not np.isfinite(bound):
        return LogPartition(-fit.value, kind, fit.error)
    if kind == "lower bound":
        return LogPartition(max(-fit.value, bound), kind, fit.error)
    digit = 10.0 ** (np.floor(np.log10(max(abs(bound), 1e-300))) - 5)
    below = np.floor(bound / digit) * digit
    notes.append(f"The same mixture proves that log Z is at least {below:.6g}, up to rounding.")
    return LogPartition(-fit.value, kind, fit.error, bound)


def _note_repeats(fit: Fit, notes: list[str]) -> None:
    """Note that several factors have the same variables, each of which the Bethe entropy
    counts."""
    if has_repeats(fit.view.ground):
        notes.append(
            worded(
                "Several factors have the same variables, and the Bethe approximation counts the "
                "entropy of each: ",
                method_call("BVI", merge_factors=True),
                " counts it once, which is often better.",
            )
        )


def _note_separation(fit: Fit, notes: list[str]) -> None:
    """Note that the Bethe entropy misjudges how components share the probability."""
    graph = fit.view.graph
    factors = sum(float(group.multiplicity.sum()) for group in graph.groups)
    mixing = factors + float((graph.variables.multiplicity * (1 - graph.degree)).sum())
    alone = fit.q.weights[0].max(axis=1).min() > ALONE
    if mixing < SEPARATED or (alone and mixing < 0):
        died = "All weight went to one component. " if alone else ""
        notes.append(
            doubt(
                f"{died}This graph has many more links than variables, and there the Bethe "
                "approximation misjudges the weights of components that are far apart: compare "
                "with NPVI, or with one component."
            )
        )


def note_on_tied_reals(view: View, mixture: Mixture) -> list[str]:
    """A note on deviations that are too small; none if they look right.

    The model is a Gaussian once its states are known. With each quadratic averaged over the states
    as the largest component sees them, its deviations are compared with those of the mixture.
    """
    if len(mixture.layout.reals) < 2:
        return []
    form = _averaged_form(view.ground, mixture)
    if form is None:
        return []
    reals = np.flatnonzero(view.ground.variables.num_states == 0)
    looked = np.random.default_rng(0).permutation(len(reals))[:MOST_LOOKED]
    within = _deviations(form, looked)
    if within is None:
        return []
    mean, var = mixture.moments(mixture.hidden[reals[looked]])
    weights = mixture.weights_of(mixture.hidden[reals[looked]])
    centre = (mean * weights).sum(axis=1, keepdims=True)
    own = np.sqrt(((var + (mean - centre) ** 2) * weights).sum(axis=1))
    variables = view.ground.variables.take(reals)
    # On an interval no deviation is much larger than that of a uniform density.
    widest = (variables.upper - variables.lower)[looked] / np.sqrt(12)
    within = np.minimum(within, widest)
    ratio = within / own
    worst = int(np.argmax(ratio))
    if not ratio[worst] > TOO_SMALL:
        return []
    name = view.ground.variables.names[int(reals[looked[worst]])]
    note = doubt(
        "The model ties reals closely, and a mixture of few products makes their deviations too "
        f"small: that of '{name}' is {own[worst]:.3g}, and {within[worst]:.3g} in the Gaussian "
        "that the model has in the states it holds for likely. Use ",
        method_call("Gibbs"),
        " where it applies.",
    )
    return [note]


def _averaged_form(ground: FactorGraph, mixture: Mixture) -> GaussianForm | None:
    """The Gaussian of all hidden reals, with quadratics averaged over states; None where there is
    more to it, or too much of it."""
    variables = ground.variables
    is_real = variables.num_states == 0
    forms = [group.potential.quadratic() for group in ground.groups]
    numbers = sum(
        g.potential.flat.shape[1] * len(g) for g in ground.groups if g.potential.num_reals
    )
    if None in forms or numbers > MOST_NUMBERS or is_real.sum() > LARGEST_FACTORISED:
        return None
    new_id = (np.cumsum(is_real) - 1).astype(np.int32)
    largest = np.argmax(mixture.class_weights(), axis=1)
    of_entry = np.repeat(largest, mixture.layout.size)
    entries = np.take_along_axis(mixture.entries, of_entry[:, None], axis=1)[:, 0]
    first = mixture.layout.first[mixture.variable_to_class]
    groups = []
    for group, form in zip(ground.groups, forms, strict=True):
        if form is None or not form.num_reals:
            continue
        A = _averaged(group, form, entries, first)
        zero = np.zeros(A.shape[:2])
        scope = new_id[group.scope[:, group.arity - form.num_reals :]]
        potential = ConditionalQuadratic(A, zero, zero[:, 0])
        groups.append(FactorGroup(potential, scope, multiplicity=group.multiplicity))
    reals = variables.take(np.flatnonzero(is_real))
    return GaussianForm.of(FactorGraph.unchecked(reals, groups, Evidence.none(), 0.0))


def _averaged(
    group: FactorGroup, form: QuadraticForm, entries: FloatArray, first: NDArray[np.int64]
) -> FloatArray:
    """(factor, real slot, real slot): A of each factor, averaged over its states."""
    share = np.ones((len(group), 1))
    for slot in range(group.arity - form.num_reals):
        states = np.arange(group.potential.slot_states[slot])
        own = entries[first[group.scope[:, slot]][:, None] + states]
        share = (share[:, :, None] * own[:, None]).reshape(len(group), -1)
    A = np.where(np.isfinite(form.c)[..., None, None], form.A, 0.0)[group.row]
    return np.asarray(np.einsum("fs,fsij->fij", share, A))


def _deviations(form: GaussianForm, at: NDArray[np.int64]) -> FloatArray | None:
    """Standard deviations of some reals; None where the form is no Gaussian."""
    size = len(form.h)
    factors = SymmetricFactors.of(form.J)
    if factors is None:
        return None
    ones = np.zeros((size, len(at)))
    ones[at, np.arange(len(at))] = 1.0
    var = factors.solve(ones)[at, np.arange(len(at))]
    return np.sqrt(var) if (var > 0).all() else None
