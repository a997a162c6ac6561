"""Accounts of development chains (NODERPC_DEV), whose keys anybody knows."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from ..domain.genesis import Genesis
from ..feature import ApplicationKind, load
from ..settings import Settings

log = logging.getLogger("flask_noderpc.dev")
# A logger of its own: ``noderpc start`` shows the accounts itself.
accounts_log = log.getChild("accounts")


class DevAccounts(ABC):
    """Funded accounts of an application's development chains."""

    @abstractmethod
    def app_state(self, settings: Settings) -> bytes:
        """Return the genesis state of a new chain with the accounts; raise
        :exc:`~flask_noderpc.errors.InvalidSetting`."""

    @abstractmethod
    def log(self, settings: Settings, genesis: Genesis) -> None:
        """Log the accounts of a chain that starts, and a warning if it began without them."""

    @abstractmethod
    def banner(self, settings: Settings, home: Path, curl: str) -> Iterator[tuple[str, str]]:
        """Yield lines of what ``noderpc start`` shows, each with its title.

        ``home`` is the chain's folder, ``curl`` the command that reaches its node RPC.
        """


def dev_accounts_of(kind: ApplicationKind) -> DevAccounts | None:
    """Return the accounts of an application's development chains; ``None`` if it has none."""
    accounts: DevAccounts | None = load(kind.dev_accounts)() if kind.dev_accounts else None
    return accounts
