"""Queries about upgrades of the chain, like the SDK's x/upgrade."""
