"""Processes that run jobs for this process."""
