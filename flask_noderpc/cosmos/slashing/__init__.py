"""Penalties of validators that miss blocks, like the SDK's x/slashing."""
