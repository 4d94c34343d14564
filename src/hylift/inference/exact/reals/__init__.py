"""Reals integrated out, or maximised over, in every state of what they depend on."""
