"""Reals on lattices: sums in place of integrals, with a certificate."""
