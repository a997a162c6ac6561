"""Penalties of validators that miss blocks, like the SDK's x/slashing."""

# Declare the messages, which the package's records and types refer to.
from . import proto as proto
