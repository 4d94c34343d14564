"""From a graph with evidence to a posterior."""

from typing import TYPE_CHECKING

from hylift.inference.capabilities import METHODS
from hylift.lazy import lazy_names

if TYPE_CHECKING:
    from hylift.inference.bounds import MiniBuckets as MiniBuckets
    from hylift.inference.exact import Exact as Exact
    from hylift.inference.expectation import EP as EP
    from hylift.inference.message import BP as BP
    from hylift.inference.message import EPBP as EPBP
    from hylift.inference.message import GaBP as GaBP
    from hylift.inference.method import Callback as Callback
    from hylift.inference.method import Lift as Lift
    from hylift.inference.method import Method as Method
    from hylift.inference.method import Request as Request
    from hylift.inference.method import Step as Step
    from hylift.inference.method import Task as Task
    from hylift.inference.run import infer as infer
    from hylift.inference.sampling import Gibbs as Gibbs
    from hylift.inference.search.maxwalksat import MaxWalkSAT as MaxWalkSAT
    from hylift.inference.smc import SMC as SMC
    from hylift.inference.variational import BVI as BVI
    from hylift.inference.variational import NPVI as NPVI
    from hylift.inference.variational import Adam as Adam
    from hylift.inference.variational import MeanField as MeanField
    from hylift.inference.variational import NaturalGradient as NaturalGradient
    from hylift.inference.variational import NaturalNewton as NaturalNewton

_HOME = {
    "Callback": "method",
    "Lift": "method",
    "Method": "method",
    "Request": "method",
    "Step": "method",
    "Task": "method",
    "infer": "run",
    "Adam": "variational",
    "NaturalGradient": "variational",
    "NaturalNewton": "variational",
    **{info.class_name: info.module for info in METHODS},
}
"""The module of each name."""

__all__ = [*_HOME]

__getattr__ = lazy_names("hylift.inference", _HOME)
