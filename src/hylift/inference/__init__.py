"""From a graph with evidence to a posterior."""

from hylift.inference.exact import Exact
from hylift.inference.message import BP, EPBP, GaBP
from hylift.inference.method import Callback, Lift, Method, Request, Step, Task
from hylift.inference.run import check_tasks, infer
from hylift.inference.sampling import Gibbs
from hylift.inference.variational import (
    BVI,
    NPVI,
    Adam,
    MeanField,
    NaturalGradient,
    NaturalNewton,
)
from hylift.inference.walk import MaxWalkSAT

__all__ = [
    "BP",
    "BVI",
    "EPBP",
    "NPVI",
    "Adam",
    "Callback",
    "Exact",
    "GaBP",
    "Gibbs",
    "Lift",
    "MaxWalkSAT",
    "MeanField",
    "Method",
    "NaturalGradient",
    "NaturalNewton",
    "Request",
    "Step",
    "Task",
    "check_tasks",
    "infer",
]
