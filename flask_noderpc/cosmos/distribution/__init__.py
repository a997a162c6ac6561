"""Rewards of delegators and commission of validators, like the SDK's x/distribution."""

# Declare the messages, which the package's records and types refer to.
from . import proto as proto
