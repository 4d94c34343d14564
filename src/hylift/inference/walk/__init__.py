"""A walk among assignments, towards the most probable one."""

from hylift.inference.walk.method import MaxWalkSAT

__all__ = ["MaxWalkSAT"]
