"""Grants of allowances to pay fees with another account's coins, like the SDK's x/feegrant."""

# Declare the messages, which the package's records and types refer to.
from . import proto as proto
