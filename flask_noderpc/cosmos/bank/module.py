"""``Module``: a part of an application with state, messages, queries and REST paths, like the
modules of the SDK."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...errors import InvalidSetting
from ..protocol.coins import Coins
from .accounts import FEE_COLLECTOR
from .context import Context
from .genesis_json import Item

if TYPE_CHECKING:
    from .messages import Handler
    from .queries.request import Method


# Names of the application's own parts of the state, and of the genesis document.
_RESERVED = ("", "acc", "auth", "bank", "consensus", "genutil", "head", "old", "written")


class Module:
    """A module of an application; a chain has it if its genesis state has a member of its name.

    Its values are in ``context.store(b"name/")``.
    """

    name = ""
    """Name of the member of the genesis state, and of the store."""
    service = ""
    """Name of the gRPC service of its queries, such as ``cosmos.staking.v1beta1.Query``."""
    version = 1
    """Consensus version, which x/upgrade's query ModuleVersions returns."""
    accounts: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Permissions of the module's own accounts, by name."""
    handlers: Sequence[Handler] = ()
    """Messages, and the functions that execute them."""
    queries: Mapping[str, Method] = MappingProxyType({})
    """Functions that answer the methods of :attr:`service`, by name."""
    grants_fees = False
    """True if :meth:`use_grant` lets accounts pay the fees of others."""
    community_pool = ""
    """Name of the module's account to which x/distribution sends the community's coins,
    instead of keeping them."""
    routes = ""
    """REST paths of the queries: lines such as ``GET /acme/notes/v1/notes/{author} Note``."""

    def methods(self) -> Mapping[str, Method]:
        """Return the functions that answer queries, by the path of the gRPC method."""
        return {f"/{self.service}/{name}": method for name, method in self.queries.items()}

    def init_genesis(self, context: Context, state: Item) -> None:
        """Store the module's state of the genesis document; raise
        :exc:`~flask_noderpc.cosmos.bank.genesis_json.InvalidState` if it is invalid."""

    def end_genesis(self, context: Context) -> None:
        """Run after the transactions of the genesis document, if it has any."""

    def use_grant(
        self,
        context: Context,
        granter: bytes,
        grantee: bytes,
        fee: Coins,
        messages: Sequence[str],
    ) -> None:
        """Use a grant for a fee of messages with these type URLs; raise ``TxError`` if the
        granter does not allow it."""

    def begin_block(self, context: Context) -> None:
        """Run before the transactions of a block."""

    def end_block(self, context: Context) -> None:
        """Run after the transactions of a block."""


def check_modules(modules: Iterable[Module], handlers: Iterable[Handler]) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidSetting` for a name that two modules use, or
    that the application uses, too; ``handlers`` are the application's."""
    taken = {("name", name): "the application" for name in _RESERVED}
    taken["account", FEE_COLLECTOR] = "the application"
    taken |= {("message", each.type.type_url): "the application" for each in handlers}
    for module in modules:
        used = [
            ("name", module.name),
            *(("account", name) for name in module.accounts),
            *(("message", each.type.type_url) for each in module.handlers),
            *(("query", path[1:]) for path in module.methods()),
        ]
        for kind, name in used:
            if owner := taken.get((kind, name)):
                raise InvalidSetting(
                    f"module {module.name!r}: expected another {kind} than {name!r}, which"
                    f" {owner} has"
                )
            taken[kind, name] = f"module {module.name!r}"
