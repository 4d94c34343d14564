"""Numerics that know nothing of models: grouping, quadrature, special functions, threads."""
