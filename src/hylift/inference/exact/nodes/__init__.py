"""Reals on the nodes of panels: bounded ones, and those that make the rest Gaussian."""
