"""Handlers that read blocks and pending transactions."""
