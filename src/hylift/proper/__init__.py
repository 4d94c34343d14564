"""The check that a model is a distribution, its error, and the paper's certificate."""
