"""Abstract roles of a backend, and the backends of this package."""
