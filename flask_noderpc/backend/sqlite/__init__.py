"""The reference backend, in SQLite."""

from .backend import MempoolLimits, SQLiteBackend

__all__ = ["MempoolLimits", "SQLiteBackend"]
