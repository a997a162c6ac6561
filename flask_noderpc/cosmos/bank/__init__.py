"""The application ``bank``: accounts, balances and transactions like the Cosmos SDK's.

The names of this package are all that an application with its own messages and modules needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..modules import MODULES
    from ..protocol.coins import Coin
    from ..protocol.fields import BLOB, BOOL, TEXT, UINT, Field, Kind, Values, coins, declared
    from ..protocol.messages import MessageType
    from ..protocol.proto import MESSAGES, declare
    from ..protocol.records import decode, encode, record
    from .application import Bank
    from .balances import event
    from .context import Context
    from .errors import Code, TxError
    from .genesis_json import Item
    from .messages import BANK_HANDLERS, Handler
    from .module import Module
    from .queries.request import QueryContext, not_found

# Module of each name, imported at first use, as the modules of the application import this
# package.
_HOMES = {
    "BANK_HANDLERS": ".messages",
    "BLOB": "..protocol.fields",
    "BOOL": "..protocol.fields",
    "MESSAGES": "..protocol.proto",
    "MODULES": "..modules",
    "TEXT": "..protocol.fields",
    "UINT": "..protocol.fields",
    "Bank": ".application",
    "Code": ".errors",
    "Coin": "..protocol.coins",
    "Context": ".context",
    "Field": "..protocol.fields",
    "Handler": ".messages",
    "Item": ".genesis_json",
    "Kind": "..protocol.fields",
    "MessageType": "..protocol.messages",
    "Module": ".module",
    "QueryContext": ".queries.request",
    "TxError": ".errors",
    "Values": "..protocol.fields",
    "coins": "..protocol.fields",
    "declare": "..protocol.proto",
    "declared": "..protocol.fields",
    "decode": "..protocol.records",
    "encode": "..protocol.records",
    "event": ".balances",
    "not_found": ".queries.request",
    "record": "..protocol.records",
}

__all__ = [
    "BANK_HANDLERS",
    "BLOB",
    "BOOL",
    "MESSAGES",
    "MODULES",
    "TEXT",
    "UINT",
    "Bank",
    "Code",
    "Coin",
    "Context",
    "Field",
    "Handler",
    "Item",
    "Kind",
    "MessageType",
    "Module",
    "QueryContext",
    "TxError",
    "Values",
    "coins",
    "declare",
    "declared",
    "decode",
    "encode",
    "event",
    "not_found",
    "record",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
