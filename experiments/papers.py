"""The popularity of papers: Figure 2a."""

from __future__ import annotations

from experiments import energies
from experiments.instances import papers
from experiments.report import Outcome
from experiments.setting import Setting

RECORDED = {"HMWS": "20484.3", "BVI": "8118.4", "L-BVI": "8024.7", "C2F-BVI": "7447.17"}
"""The best energies that the authors recorded, with the first of the published files."""


def run(setting: Setting) -> Outcome:
    """Energies of MAP assignments against time, beside the exact optimum."""
    return energies.experiment("Paper popularity (Figure 2a)", setting, problems(setting))


def problems(setting: Setting) -> list[energies.Problem]:
    """Both files, or as many settings of generated evidence, in each variant."""
    return energies.problems(
        setting,
        lambda data, variant: [
            papers.published(data, number, variant) for number in range(papers.NUM_PUBLISHED)
        ],
        papers.generated,
        RECORDED,
    )
