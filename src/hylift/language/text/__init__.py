"""Models as text: read and written."""
