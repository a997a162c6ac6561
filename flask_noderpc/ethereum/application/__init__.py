"""Embedded chain that executes Ethereum transactions."""
