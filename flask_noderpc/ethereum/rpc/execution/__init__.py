"""Handlers that read Ethereum's state or run code on it."""
