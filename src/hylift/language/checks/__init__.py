"""Errors and warnings about models."""
