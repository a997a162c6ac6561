"""Ethereum's JSON: parameters, results, and the objects in them."""
