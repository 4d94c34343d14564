"""Files that others wrote, and files that others read."""
