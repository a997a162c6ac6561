"""Tests of the EVM layer at its boundary."""
