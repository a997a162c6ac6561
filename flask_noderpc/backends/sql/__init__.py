"""Shared parts of the stores that are SQL databases."""
