"""Compiled loops over the variables of a mixture, with one branch per family."""
