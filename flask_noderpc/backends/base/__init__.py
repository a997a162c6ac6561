"""The abstract backend and its capabilities, without any store."""
