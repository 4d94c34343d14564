"""Is this model a distribution? One check, one answer, one error; and the paper's certificate."""
