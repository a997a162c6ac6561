"""Executors: child processes that run jobs for this process."""
