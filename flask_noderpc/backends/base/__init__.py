"""Abstract backend and its capabilities, independent of any store."""
