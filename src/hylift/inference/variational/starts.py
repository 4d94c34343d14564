"""Mixtures to begin with: random ones, ones around a Gaussian, and ones that were found before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.components import Betas, Gaussians
from hylift.components.family import LEAST_PROBABILITY, LEAST_WEIGHT
from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph
from hylift.inference.prepared import View
from hylift.inference.variational.problem import FitProblem, FloatArray, Mixtures, as_betas
from hylift.numerics.segments import first_of_each
from hylift.posterior import Posterior
from hylift.posterior.mixture import Mixture
from hylift.proper.gaussian import GaussianForm
from hylift.words import counted, option, worded

MUCH_WIDER = 50.0
"""An interval that is more times as wide as what is found is not searched as a whole."""
NEARBY = 0.5
"""Standard deviations by which the components of a mixture of products are moved apart."""
WIDTHS = (1.0, 0.45)
"""Relative widths of the mixtures around a Gaussian."""
LEAST_SHARE = 0.1
"""Of the variance in the best single product, which a warm start has at least."""


def random_starts(
    problem: FitProblem,
    num_starts: int,
    num_components: int,
    rng: np.random.Generator,
    products: Mixtures,
) -> Mixtures:
    """Components that know little: wide, and anywhere in the intervals of the reals.

    Of several components, the first start has the best of some products of Gaussians, and the
    second the very best of them alone, so that a mixture ends no worse than a single product.
    """
    layout, found = problem.layout, products.entries[:, :, 0]
    entries = rng.uniform(0.1, 1.0, (num_starts, layout.num_entries, num_components))
    layout.normalize(entries, layout.discrete)
    reals = layout.reals
    lower, upper = _box(problem, found)
    span = (upper - lower)[:, None]
    place = rng.random((num_starts, len(reals), num_components))
    at = layout.first[reals]
    entries[:, at] = lower[:, None] + span * place
    entries[:, at + 1] = (span / 6) ** 2
    if num_components > 1:
        entries[0] = found[np.arange(num_components) % len(found)].T
        entries[1:2] = found[0][:, None]
        entries[:2] = apart(problem, Mixtures.even(entries[:2], problem.num_parts), rng).entries
    elif num_starts:
        entries[0] = found[0][:, None]
    return as_betas(problem, Mixtures.even(entries, problem.num_parts))


def apart(problem: FitProblem, q: Mixtures, rng: np.random.Generator) -> Mixtures:
    """Mixtures of Gaussians with all components but the first moved a little."""
    layout = problem.layout
    reals = layout.reals
    at = layout.first[reals]
    entries = q.entries.copy()
    noise = rng.normal(size=(q.num_starts, len(at), q.num_components))
    noise[:, :, 0] = 0.0
    entries[:, at] += NEARBY * np.sqrt(entries[:, at + 1]) * noise
    bounds = layout.lower[reals][:, None], layout.upper[reals][:, None]
    entries[:, at] = np.clip(entries[:, at], *bounds)
    return Mixtures(q.weights, entries)


def _box(problem: FitProblem, products: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(real,): between which values to look for each real.

    The bounds, where it has them and they are not much further apart than what is found; else
    what some products (product, entry) lead to.
    """
    layout, reals = problem.layout, problem.layout.reals
    at = layout.first[reals]
    mean, sd = products[:, at], np.sqrt(products[:, at + 1])
    lower, upper = layout.lower[reals], layout.upper[reals]
    low = np.maximum((mean - 2 * sd).min(axis=0), lower)
    high = np.minimum((mean + 2 * sd).max(axis=0), upper)
    known = upper - lower <= MUCH_WIDER * (high - low)
    return np.where(known, lower, low), np.where(known, upper, high)


def displaced(
    product: Mixtures, form: GaussianForm, num_components: int, most_starts: int
) -> Mixtures:
    """A Gaussian's best product, and copies of it moved to both sides, all reals together: in the
    directions in which they vary together.

    The first start is right where they vary much more together than alone, the second where they
    hardly do.
    """
    furthest = min(0.45 * num_components - 0.05, 3.5) * np.array(WIDTHS[:most_starts])
    offset = np.linspace(-furthest, furthest, num_components, axis=1)  # (start, component)
    entries = np.empty((len(offset), product.entries.shape[1], num_components))
    sd = form.signs() / np.sqrt(form.precision)
    entries[:, 0::2] = product.entries[:, 0::2] + sd[:, None] * offset[:, None]
    entries[:, 1::2] = 0.9 * product.entries[:, 1::2]
    weights = np.exp(-(offset**2) / 4)
    weights /= weights.sum(axis=1, keepdims=True)
    return Mixtures(np.repeat(weights[:, None], product.weights.shape[1], axis=1), entries)


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """A mixture that was found before, about variables of the same names."""

    mixture: Mixture
    source: NDArray[np.int64]
    """(variable of the graph,): its position among the hidden variables of the mixture, or -1."""

    @classmethod
    def of(cls, posterior: Posterior, graph: FactorGraph, components: int) -> WarmStart:
        """From the posterior of an earlier run, perhaps with other evidence."""
        mixture = posterior.mixture
        if mixture is None:
            raise UnsupportedError(
                f"a warm start needs the posterior of BVI, NPVI or MeanField, not one of "
                f"'{posterior.solution.method}'"
            )
        if mixture.num_components != components:
            raise UnsupportedError(
                f"the posterior to start from has {counted(mixture.num_components, 'component')}, "
                f"not {components}",
                worded("ask for ", option("components", mixture.num_components)),
            )
        source = graph.variables.places_in(posterior.variables, mixture.hidden)
        if not (source >= 0).any():
            raise UnsupportedError(
                "the posterior to start from is about other variables: none of its atoms, such as "
                f"'{posterior.variables.names[int(mixture.hidden[0])]}', is hidden in this model"
            )
        known = mixture if isinstance(mixture, Mixture) else mixture.product()
        return cls(known, source)

    def betas(
        self, view: View, problem: FitProblem, chosen: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """(variable,): which variables of a view had Betas, as before, or as chosen if new."""
        old = self._classes(view, problem)
        known = old >= 0
        is_beta = chosen.copy()
        is_beta[known] = self.mixture.layout.has(Betas)[old[known]]
        return is_beta & np.isfinite(problem.layout.upper - problem.layout.lower)

    def mixtures(self, view: View, problem: FitProblem, product: Mixtures) -> Mixtures:
        """The same mixture, over the variables of a view; the product where it knows nothing, or
        has another family."""
        count = self.mixture.num_components
        entries = np.repeat(as_betas(problem, product).entries, count, axis=2)
        old = self._classes(view, problem)
        known = np.flatnonzero(old >= 0)
        known = known[self.mixture.layout.family[old[known]] == problem.layout.family[known]]
        to = problem.layout.entries_of(known)
        entries[0, to] = self.mixture.entries[self.mixture.layout.entries_of(old[known])]
        # A real that was pinned down could not leave before weights have settled.
        var = problem.layout.first[known[problem.layout.has(Gaussians)[known]]] + 1
        entries[0, var] = np.maximum(entries[0, var], LEAST_SHARE * product.entries[0, var])
        # A state of probability zero could never come back.
        states = problem.layout.entries_of(known[problem.layout.is_discrete[known]])
        entries[0, states] = np.maximum(entries[0, states], LEAST_PROBABILITY)
        # A part has the weights that one of its variables had.
        weights = np.full((problem.num_parts, count), 1.0 / count)
        weights[problem.part[known]] = self.mixture.class_weights()[old[known]]
        weights = np.maximum(weights, LEAST_WEIGHT)
        return Mixtures((weights / weights.sum(axis=1, keepdims=True))[None], entries)

    def _classes(self, view: View, problem: FitProblem) -> NDArray[np.int64]:
        """(variable,): the class of the old mixture that a variable of the view was in, or -1."""
        member = first_of_each(view.variable_to_class)
        position = self.source[view.hidden[member]]
        old = self.mixture.variable_to_class[position] if len(self.mixture.hidden) else position
        return np.where(position >= 0, old, -1).astype(np.int64)
