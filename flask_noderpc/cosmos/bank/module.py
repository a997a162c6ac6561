"""``Module``: a part of an application with state, messages, queries and REST paths, like the
modules of the SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from .context import Context
from .genesis_json import Item

if TYPE_CHECKING:
    from .messages import Handler
    from .queries.request import Method


class Module:
    """A module of an application; a chain has it if its genesis state has a member of its name.

    Its values are in ``context.store(b"name/")``.
    """

    name = ""
    """Name of the member of the genesis state, and of the store."""
    service = ""
    """Name of the gRPC service of its queries, such as ``cosmos.staking.v1beta1.Query``."""
    accounts: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Permissions of the module's own accounts, by name."""
    handlers: Sequence[Handler] = ()
    """Messages, and the functions that execute them."""
    queries: Mapping[str, Method] = MappingProxyType({})
    """Functions that answer the methods of :attr:`service`, by name."""
    routes = ""
    """REST paths of the queries: lines such as ``GET /acme/notes/v1/notes/{author} Note``."""

    def init_genesis(self, context: Context, state: Item) -> None:
        """Store the module's state of the genesis document; raise
        :exc:`~flask_noderpc.cosmos.bank.genesis_json.InvalidState` if it is invalid."""

    def end_genesis(self, context: Context) -> None:
        """Run after all modules have stored their state, and the transactions of the genesis
        document were executed."""

    def begin_block(self, context: Context) -> None:
        """Run before the transactions of a block."""

    def end_block(self, context: Context) -> None:
        """Run after the transactions of a block."""
