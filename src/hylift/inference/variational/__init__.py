"""Mixtures of products, fitted to a graph by minimising a free energy."""
