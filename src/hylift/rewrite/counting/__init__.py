"""Look-alike discrete variables as counts of their states."""
