"""Handlers that read Ethereum's state or execute code on it."""
