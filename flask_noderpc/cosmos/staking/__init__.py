"""Validators, delegations and their unbonding, like the SDK's x/staking."""

# Declare the messages, which the package's records and types refer to.
from . import proto as proto
