"""Processes and servers of its own, for the addresses that a node has."""
