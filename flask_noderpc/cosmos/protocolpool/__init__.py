"""The community's coins, and funds that get a part of them, like the SDK's x/protocolpool."""

# Declare the messages, which the package's records and types refer to.
from . import proto as proto
