"""The application ``bank``: accounts, balances and transactions like the Cosmos SDK's."""

from __future__ import annotations

from ..protocol.fields import BLOB, BOOL, TEXT, UINT, Field, Kind, Values, coins
from ..protocol.messages import MessageType
from .application import Bank
from .balances import event
from .context import Context
from .errors import Code, TxError
from .messages import BANK_HANDLERS, Handler

__all__ = [
    "BANK_HANDLERS",
    "BLOB",
    "BOOL",
    "TEXT",
    "UINT",
    "Bank",
    "Code",
    "Context",
    "Field",
    "Handler",
    "Kind",
    "MessageType",
    "TxError",
    "Values",
    "coins",
    "event",
]
