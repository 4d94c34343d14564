"""Pictures of one posterior, or of several with labels."""

from __future__ import annotations

from collections.abc import Mapping

from hylift.errors import UnsupportedError
from hylift.posterior import Posterior


def by_label(
    posteriors: Posterior | Mapping[str, Posterior], name: str, most: int
) -> dict[str, Posterior]:
    """The posteriors by their labels, one alone by its method; raises where they are none, or too
    many. name: of the function that draws them."""
    if isinstance(posteriors, Posterior):
        posteriors = {posteriors.solution.method: posteriors}
    if not isinstance(posteriors, Mapping) or not all(
        isinstance(posterior, Posterior) for posterior in posteriors.values()
    ):
        raise UnsupportedError(
            f"{name} draws a posterior, or several as a mapping: {{'BVI': posterior, …}}"
        )
    if not 0 < len(posteriors) <= most:
        raise UnsupportedError(f"{name} draws 1 to {most} posteriors, not {len(posteriors)}")
    return {str(label): posterior for label, posterior in posteriors.items()}
