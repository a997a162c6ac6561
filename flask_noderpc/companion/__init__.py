"""Companion of nodes: follows their chain into a store, verifies it, and serves it."""
