"""The EVM layer, from the outside."""
