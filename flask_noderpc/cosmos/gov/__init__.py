"""Proposals, deposits and votes, like the SDK's x/gov."""

# Declare the messages, which the package's records and types refer to.
from . import proto as proto
