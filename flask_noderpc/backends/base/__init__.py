"""Interfaces of backends and of their capabilities, independent of any store."""
