"""Lifted probabilistic inference in hybrid relational models.

import hylift as hl

model = hl.parse('''
    In(paper, topic)
    popularity(paper): real
    trend(topic): real
    0.5  In(p, t) * (popularity(p) = trend(t))
    -0.1 trend(t)^2
    0.3  popularity(p) = 1
''')
graph = hl.ground(model, {"In": pairs, "popularity": measured}, closed=["In"])
posterior = hl.infer(graph)
posterior.marginals("trend(*)").to_pandas()
"""

from typing import TYPE_CHECKING

from hylift.lazy import lazy_names

if TYPE_CHECKING:
    from hylift.errors import DoubtWarning as DoubtWarning
    from hylift.errors import HyliftError as HyliftError
    from hylift.errors import HyliftWarning as HyliftWarning
    from hylift.formats.uai import read_evidence as read_evidence
    from hylift.formats.uai import read_uai as read_uai
    from hylift.formats.uai import write_uai as write_uai
    from hylift.graph import Atoms as Atoms
    from hylift.graph import Domain as Domain
    from hylift.graph import Evidence as Evidence
    from hylift.graph import FactorGraph as FactorGraph
    from hylift.graph import FactorGroup as FactorGroup
    from hylift.graph import Names as Names
    from hylift.graph import Soft as Soft
    from hylift.graph import Variables as Variables
    from hylift.graph import boolean as boolean
    from hylift.graph import categorical as categorical
    from hylift.graph import interval as interval
    from hylift.graph import real as real
    from hylift.grounding import Grounding as Grounding
    from hylift.grounding import SizeWarning as SizeWarning
    from hylift.grounding import World as World
    from hylift.grounding import ground as ground
    from hylift.grounding import ground_world as ground_world
    from hylift.grounding import size_estimate as size_estimate
    from hylift.inference import BP as BP
    from hylift.inference import BVI as BVI
    from hylift.inference import EP as EP
    from hylift.inference import EPBP as EPBP
    from hylift.inference import NPVI as NPVI
    from hylift.inference import SMC as SMC
    from hylift.inference import Adam as Adam
    from hylift.inference import Exact as Exact
    from hylift.inference import GaBP as GaBP
    from hylift.inference import Gibbs as Gibbs
    from hylift.inference import MaxWalkSAT as MaxWalkSAT
    from hylift.inference import MeanField as MeanField
    from hylift.inference import MiniBuckets as MiniBuckets
    from hylift.inference import NaturalGradient as NaturalGradient
    from hylift.inference import NaturalNewton as NaturalNewton
    from hylift.inference import infer as infer
    from hylift.inference.checking import check_answer as check_answer
    from hylift.inference.filtering import Filtered as Filtered
    from hylift.inference.filtering import kalman_filter as kalman_filter
    from hylift.language import Model as Model
    from hylift.language import ModelBuilder as ModelBuilder
    from hylift.language import ModelWarning as ModelWarning
    from hylift.language import check as check
    from hylift.language import format_model as format_model
    from hylift.language import parse as parse
    from hylift.language import read_model as read_model
    from hylift.language.operators import absolute as absolute
    from hylift.language.operators import avg_over as avg_over
    from hylift.language.operators import count_over as count_over
    from hylift.language.operators import density as density
    from hylift.language.operators import exactly as exactly
    from hylift.language.operators import exists as exists
    from hylift.language.operators import exp as exp
    from hylift.language.operators import forall as forall
    from hylift.language.operators import gaussian as gaussian
    from hylift.language.operators import log as log
    from hylift.language.operators import max_over as max_over
    from hylift.language.operators import maximum as maximum
    from hylift.language.operators import min_over as min_over
    from hylift.language.operators import minimum as minimum
    from hylift.language.operators import normal as normal
    from hylift.language.operators import sum_over as sum_over
    from hylift.lifting import Lifting as Lifting
    from hylift.lifting import coarse_to_fine as coarse_to_fine
    from hylift.lifting import ground_lifted as ground_lifted
    from hylift.lifting import lift as lift
    from hylift.plot import plot_classes as plot_classes
    from hylift.plot import plot_convergence as plot_convergence
    from hylift.plot import plot_forest as plot_forest
    from hylift.plot import plot_marginals as plot_marginals
    from hylift.plot import plot_race as plot_race
    from hylift.posterior import Posterior as Posterior
    from hylift.potentials import ConditionalQuadratic as ConditionalQuadratic
    from hylift.potentials import Function as Function
    from hylift.potentials import Potential as Potential
    from hylift.potentials import Table as Table
    from hylift.proper.certificate import bethe_certificate as bethe_certificate
    from hylift.racing import Race as Race
    from hylift.racing import race as race
    from hylift.rewrite.merge import merge_factors as merge_factors

_HOME = {
    "DoubtWarning": "errors",
    "HyliftError": "errors",
    "HyliftWarning": "errors",
    "ConditionalQuadratic": "potentials",
    "Function": "potentials",
    "Potential": "potentials",
    "Table": "potentials",
    "Atoms": "graph",
    "Domain": "graph",
    "Evidence": "graph",
    "FactorGraph": "graph",
    "FactorGroup": "graph",
    "Names": "graph",
    "Soft": "graph",
    "Variables": "graph",
    "boolean": "graph",
    "categorical": "graph",
    "interval": "graph",
    "real": "graph",
    "read_evidence": "formats.uai",
    "read_uai": "formats.uai",
    "write_uai": "formats.uai",
    "Model": "language",
    "ModelBuilder": "language",
    "ModelWarning": "language",
    "check": "language",
    "absolute": "language.operators",
    "avg_over": "language.operators",
    "count_over": "language.operators",
    "max_over": "language.operators",
    "min_over": "language.operators",
    "sum_over": "language.operators",
    "density": "language.operators",
    "exactly": "language.operators",
    "exists": "language.operators",
    "exp": "language.operators",
    "forall": "language.operators",
    "gaussian": "language.operators",
    "log": "language.operators",
    "maximum": "language.operators",
    "minimum": "language.operators",
    "normal": "language.operators",
    "format_model": "language",
    "parse": "language",
    "read_model": "language",
    "Grounding": "grounding",
    "SizeWarning": "grounding",
    "World": "grounding",
    "ground": "grounding",
    "ground_world": "grounding",
    "size_estimate": "grounding",
    "Lifting": "lifting",
    "coarse_to_fine": "lifting",
    "ground_lifted": "lifting",
    "lift": "lifting",
    "Posterior": "posterior",
    "BP": "inference",
    "EP": "inference",
    "EPBP": "inference",
    "GaBP": "inference",
    "Gibbs": "inference",
    "MaxWalkSAT": "inference",
    "BVI": "inference",
    "NPVI": "inference",
    "SMC": "inference",
    "MeanField": "inference",
    "MiniBuckets": "inference",
    "Adam": "inference",
    "NaturalGradient": "inference",
    "NaturalNewton": "inference",
    "Exact": "inference",
    "infer": "inference",
    "check_answer": "inference.checking",
    "Filtered": "inference.filtering",
    "kalman_filter": "inference.filtering",
    "plot_convergence": "plot",
    "bethe_certificate": "proper.certificate",
    "merge_factors": "rewrite.merge",
    "plot_classes": "plot",
    "plot_forest": "plot",
    "plot_marginals": "plot",
    "plot_race": "plot",
    "Race": "racing",
    "race": "racing",
}
"""The module of each public name."""

__all__ = [*_HOME]


__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
