"""Formulas -> potentials."""
