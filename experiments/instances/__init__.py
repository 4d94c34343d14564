"""The models of the paper with published or generated evidence, one module per model."""

from experiments.instances import kalman, papers, rgm, robot, toy
from experiments.instances.instance import Instance, Variant

__all__ = ["Instance", "Variant", "kalman", "papers", "rgm", "robot", "toy"]
