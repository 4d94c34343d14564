"""Assignments that change one variable at a time: what local search and Gibbs sampling share."""
