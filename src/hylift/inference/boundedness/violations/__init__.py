"""States that let reals go: found, told, and asked whether they are possible."""
