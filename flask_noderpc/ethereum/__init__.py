"""Ethereum: its JSON-RPC, and a chain that runs its transactions."""
