"""Compiled loops of sequential Monte Carlo."""
