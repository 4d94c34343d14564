"""Settings of a fit, and the mixture that was found with them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hylift.inference.prepared import View
from hylift.inference.variational.joint import JointGaussians
from hylift.inference.variational.objective import Entropy
from hylift.inference.variational.optimisers import NaturalNewton, Optimiser
from hylift.inference.variational.problem import FitProblem, Mixtures, Reals


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that BVI, NPVI and mean field share."""

    entropy: Entropy
    components: int
    optimiser: Optimiser
    restarts: int
    max_steps: int
    reals: Reals
    tolerance: float

    @property
    def by_coordinates(self) -> bool:
        """True if exact updates of one variable after the other are the optimiser."""
        single = self.components == 1 and self.entropy == "bethe"
        return single and isinstance(self.optimiser, NaturalNewton)

    @property
    def needs_grids(self) -> bool:
        """True if the entropy is integrated on grids."""
        return self.entropy == "bethe" and self.components > 1


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The mixture that was found, in the last view."""

    view: View
    problem: FitProblem
    q: Mixtures  # one
    value: float
    """Its free energy."""
    error: float
    """Its numerical error, estimated by a finer quadrature."""
    converged: bool
    is_feasible: bool
    """True if nothing impossible has a probability."""
    is_closed_form: bool
    """True if it needed no steps, as the best product of a Gaussian is known."""
    single: Fit | None = None
    """The best single product, where that was fitted first."""
    joint: JointGaussians | None = None
    """Of its components, which then are no products: `q` has the variances of each real."""

    def copied(self, count: int) -> Fit:
        """The fit of a single product as a mixture of so many copies of it."""
        entries = np.repeat(self.q.entries, count, axis=2)
        return replace(self, q=Mixtures.even(entries, self.problem.num_parts))
