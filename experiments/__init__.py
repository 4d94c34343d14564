"""The tables and figures of the paper, each run by one command."""
