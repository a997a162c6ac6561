"""Processes and servers of ``noderpc start``, at the addresses that a node has."""
