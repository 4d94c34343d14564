"""The authors' answers for the last month, which are published beside the constants."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.instances import kalman, sources
from experiments.kalman.trials import Trial, modes


def compare_answers(data: Path, shape: kalman.Shape, trials: Sequence[Trial]) -> str:
    """A sentence on how far exact answers are from the authors'."""
    path = data / "groundwater" / f"LRKF_{shape}.mat"
    size = (kalman.NUM_WELLS[shape], kalman.NUM_PUBLISHED)
    theirs = sources.read_matrix(path, "res", size).T[: len(trials)]
    ours = [modes(one.exact.posterior) for one in trials]
    return (
        f"The authors' own answers for the last month (res of {path.name}, a row per well) differ "
        f"from the exact ones by up to {np.abs(theirs - ours).max():.2g}: they are those of "
        "another filter."
    )
