"""One graph into another of the same distribution: parts taken apart, merged or integrated out."""
