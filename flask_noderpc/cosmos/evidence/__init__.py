"""Penalties of validators that sign two blocks, like the SDK's x/evidence."""
