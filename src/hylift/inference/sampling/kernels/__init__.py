"""Compiled sweeps of Markov chains."""
