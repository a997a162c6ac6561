"""Processes and HTTP servers of ``noderpc start``, and the addresses at which they listen."""
