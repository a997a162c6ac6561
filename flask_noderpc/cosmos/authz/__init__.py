"""Authorizations to send messages in another account's name, like the SDK's x/authz."""

# Declare the messages, which the package's records and types refer to.
from . import proto as proto
