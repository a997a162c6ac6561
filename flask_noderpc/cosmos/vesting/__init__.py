"""Messages that create vesting accounts, like the SDK's x/auth/vesting."""

# Declare the messages, which the package's types refer to.
from . import proto as proto
