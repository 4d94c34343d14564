"""The variational methods: their settings, and the way from a graph to a posterior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hylift.components.gaussian import LEAK
from hylift.errors import UnsupportedError, check_word
from hylift.inference.control import Control
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared, View
from hylift.inference.settings import check_whole, is_number
from hylift.inference.variational.answer import (
    Restored,
    has_bounds,
    mixture_of,
    posterior_of,
)
from hylift.inference.variational.fit import Fitter
from hylift.inference.variational.fitted import Fit, Settings
from hylift.inference.variational.joint_fit import check_taken, jointly, without_simple_leaves
from hylift.inference.variational.objective import TOLERANCE, Entropy
from hylift.inference.variational.optimisers import NaturalNewton, Optimiser
from hylift.inference.variational.problem import Reals, better_families, check_one_sided
from hylift.inference.variational.starts import WarmStart
from hylift.inference.variational.views import views
from hylift.lifting import Beliefs
from hylift.posterior import Posterior
from hylift.rewrite.leaves import ConstantLeaves, Remaining, eliminate_leaves
from hylift.words import option, worded

MOST_FITS = 3
"""Fits after which all reals with bounds are kept, if bounds of those left out still matter."""


@dataclass(frozen=True, slots=True)
class BVI:
    """A mixture of products that minimises the Bethe free energy.

    Accurate marginals, in graphs with and without loops. Its log Z is an estimate; on forests, and
    with one component, a lower bound.
    """

    components: int = 3
    """Products in the mixture: more of them see more modes and correlations."""
    optimiser: Optimiser = field(default_factory=NaturalNewton)
    restarts: int = 5
    """Random starts, of which the best by the objective is kept."""
    max_steps: int = 1000
    reals: Reals = "auto"
    """Components of bounded reals: 'gaussian', 'beta', or 'auto': Beta where bounds matter."""
    tolerance: float = TOLERANCE
    """Fall of the objective in a step, per variable and in nats, at which it has converged."""
    merge_factors: bool = False
    """If set, factors whose scopes are nested become one, which changes the Bethe entropy."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def name(self) -> str:
        return f"BVI({self.components})"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        settings = _settings(self, "bethe")
        return _solve(self.name, settings, prepared, request, merge=self.merge_factors)


Bound = Literal["jensen", "tracey"]
"""Lower bounds on the entropy of a mixture."""


@dataclass(frozen=True, slots=True)
class NPVI:
    """A mixture of products that maximises a lower bound on log Z (Gershman et al. 2012).

    The bound is certified where all factors are tables or quadratics, and no Gaussian reaches
    beyond the bounds of its real.
    """

    components: int = 3
    optimiser: Optimiser = field(default_factory=NaturalNewton)
    restarts: int = 10
    max_steps: int = 1000
    reals: Reals = "auto"
    tolerance: float = TOLERANCE
    bound: Bound = "jensen"
    """Of the entropy: by Jensen's inequality, as in the paper; or 'tracey', by Kolchinsky and
    Tracey (2017), which is much tighter where reals are, and never worse than mean field."""
    joint: bool = False
    """Give each component one joint Gaussian for all reals, in place of a Gaussian for each: for
    tables and quadratics, without bounds, with the bound 'tracey'."""

    def __post_init__(self) -> None:
        _check(self)
        check_word("bound", self.bound, get_args(Bound))
        if not isinstance(self.joint, bool):
            raise UnsupportedError(
                worded(option("joint"), f" must be True or False, not {self.joint!r}")
            )
        if self.joint and (self.bound != "tracey" or self.reals == "beta"):
            raise UnsupportedError(
                worded(option("joint"), " is for Gaussians, and for the bound of their overlap"),
                worded("use ", option("bound", "tracey"), " and no ", option("reals", "beta")),
            )

    @property
    def name(self) -> str:
        words = [str(self.components), *(["tracey"] if self.bound == "tracey" else [])]
        return f"NPVI({', '.join(words + ['joint'] * self.joint)})"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        is_single = self.bound == "tracey" and self.components == 1
        settings = _settings(self, "bethe" if is_single else self.bound)
        if self.joint and bool((prepared.ground.variables.num_states == 0).any()):
            return _solve_jointly(self.name, settings, prepared, request)
        return _solve(self.name, settings, prepared, request)


@dataclass(frozen=True, slots=True)
class MeanField:
    """A single product: the fastest, with a certified lower bound on log Z."""

    optimiser: Optimiser = field(default_factory=NaturalNewton)
    restarts: int = 5
    max_steps: int = 1000
    reals: Reals = "auto"
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        _check(self)

    @property
    def components(self) -> int:
        return 1

    @property
    def name(self) -> str:
        return "mean field"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        return _solve(self.name, _settings(self, "bethe"), prepared, request)


def _settings(method: BVI | NPVI | MeanField, entropy: Entropy) -> Settings:
    return Settings(
        entropy,
        method.components,
        method.optimiser,
        method.restarts,
        method.max_steps,
        method.reals,
        method.tolerance,
    )


def _proper(found: Iterator[View]) -> Iterator[View]:
    """The views, after a look at whether the model is a distribution."""
    for number, view in enumerate(found):
        if number == 0:
            view.prepared.check_proper()
        yield view


def _solve(
    name: str, settings: Settings, prepared: Prepared, request: Request, *, merge: bool = False
) -> Posterior:
    control, graph = Control(request), prepared.source
    keep = has_bounds(graph) if settings.reals == "beta" else np.zeros(graph.num_variables, bool)
    for number in range(MOST_FITS + 1):
        small = eliminate_leaves(graph, keep)
        fit = _best_fit(settings, _prepared(small, prepared), request, control, merge=merge)
        whole = Restored.of(graph, small, mixture_of(fit))
        beyond = whole.lost > LEAK
        if number == MOST_FITS or not beyond.any() or not control.should_continue():
            break
        keep |= beyond if number < MOST_FITS - 1 else has_bounds(graph)
    if fit.view.shift is None:
        check_one_sided(fit.problem, fit.q)
    return posterior_of(prepared, whole, name, settings, fit, control, request)


def _solve_jointly(
    name: str, settings: Settings, prepared: Prepared, request: Request
) -> Posterior:
    check_taken(prepared.source)
    control, small = Control(request), without_simple_leaves(prepared.source)
    found = replace(settings, reals="gaussian")
    fit = _best_fit(found, _prepared(small, prepared), request, control, merge=False)
    fit = jointly(fit, settings, control)
    whole = Restored.of(prepared.source, small, mixture_of(fit))
    return posterior_of(prepared, whole, name, settings, fit, control, request)


def _prepared(small: Remaining[ConstantLeaves], whole: Prepared) -> Prepared:
    """The graph without its leaves, prepared; where there were none, that is the whole."""
    return Prepared.of(small.graph) if small.eliminated else whole


def _best_fit(
    settings: Settings, prepared: Prepared, request: Request, control: Control, *, merge: bool
) -> Fit:
    """A fit with the families that suit it; for 'tracey' no worse than that of a single product."""
    single: Fit | None = None
    if settings.entropy == "tracey":
        one = replace(settings, entropy="bethe", components=1, restarts=MeanField().restarts)
        alone = replace(request, start=None)
        single = _best_fit(one, prepared, alone, control, merge=merge)
        if not control.should_continue():
            return single.copied(settings.components)
    start = None
    if request.start is not None:
        start = WarmStart.of(request.start, prepared.source, settings.components)

    def fitted(is_beta: NDArray[np.bool_] | None = None) -> Fit:
        return _fitted(
            settings, prepared, request, control, start, is_beta, merge=merge, single=single
        )

    fit = fitted()
    if settings.reals == "auto" and control.should_continue():
        is_beta = better_families(mixture_of(fit))
        if is_beta is not None:
            second = fitted(is_beta)
            # A fit that came to its end is better than one that was stopped on its way.
            is_better = control.ended is None or (second.converged and second.view.is_last)
            fit = second if is_better else fit
    if single is not None and not fit.value <= single.value:
        return single.copied(settings.components)
    return replace(fit, single=single)


def _fitted(
    settings: Settings,
    prepared: Prepared,
    request: Request,
    control: Control,
    start: WarmStart | None,
    is_beta: NDArray[np.bool_] | None,
    *,
    merge: bool,
    single: Fit | None,
) -> Fit:
    fitter = Fitter(settings, control, np.random.default_rng(request.seed), is_beta, single)

    def beliefs() -> Beliefs:
        assert fitter.state is not None
        return fitter.state.problem.beliefs(fitter.state.q)

    gaussian: Literal["centred", "solved"] | None = None
    if settings.reals != "beta" and start is None and is_beta is None:
        gaussian = "centred" if settings.components > 1 else "solved"
    found = views(prepared, request.lift, beliefs, gaussian=gaussian, merge=merge)
    return fitter.fit(_proper(found), start)


def _check(method: BVI | NPVI | MeanField) -> None:
    """Raise unless the settings are valid."""
    for name in ("components", "restarts", "max_steps"):
        check_whole(name, getattr(method, name))
    if not is_number(method.tolerance) or not 0 < method.tolerance < 1:
        raise UnsupportedError(
            f"tolerance must be a number between 0 and 1, not {method.tolerance!r}"
        )
    if method.reals not in get_args(Reals):
        raise UnsupportedError(
            f"reals must be one of {', '.join(map(repr, get_args(Reals)))}, not {method.reals!r}"
        )
    if isinstance(method.optimiser, type) or not hasattr(method.optimiser, "step"):
        raise UnsupportedError(
            f"optimiser must be a value such as Adam(learning_rate=0.2), not {method.optimiser!r}"
        )
