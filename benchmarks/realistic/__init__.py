"""Chains of the size that main networks have, with real hashes and signatures."""
