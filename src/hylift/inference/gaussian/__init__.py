"""Graphs of reals and quadratics: maxima, bounds, and whether they are distributions."""
