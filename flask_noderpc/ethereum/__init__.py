"""Ethereum: its JSON-RPC, and a chain that executes its transactions."""
