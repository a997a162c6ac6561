"""Processes that run jobs for this one."""
