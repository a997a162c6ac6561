"""Interfaces for features: chains that replace a mount's embedded chain, and funded accounts
of development chains (NODERPC_DEV), whose keys are public."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..concurrency import usable_cores
from ..domain.genesis import Genesis
from ..errors import InvalidSetting
from ..feature import ApplicationKind, features, load
from ..settings import PREFIX, Settings

if TYPE_CHECKING:
    from ..backends.base.backend import ChainBackend


@dataclass(frozen=True, slots=True)
class Process:
    """One of the processes that ``noderpc start`` runs."""

    serves: bool = True
    """False for a process that serves no requests, but calls
    :meth:`~flask_noderpc.ChainBackend.follow`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Values of settings that differ in this process, by name."""


MAX_AUTO_WORKERS = 8
"""Maximum of ``auto``: with more, each process has too small a share of the caches."""


def worker_count(settings: Settings, most: int = MAX_AUTO_WORKERS) -> int:
    """Return NODERPC_WORKERS; ``auto`` is the number of usable cores, at most ``most``, and 1
    with NODERPC_DEV.

    Snapshots, impersonated accounts and manual mining are state of one process, and other
    development nodes are one process, too.
    """
    if settings.workers != "auto":
        return settings.workers
    return 1 if settings.dev else min(usable_cores(), most)


class ChainSource(ABC):
    """Source of a chain that replaces the embedded chain if a setting selects it, such as a
    followed chain.

    ``path`` is the file or URL of the mount's store, from NODERPC_DATABASE or its default. No
    file or connection is opened before a method is called.
    """

    def __init__(self, settings: Settings, path: str) -> None:
        self.settings, self.path = settings, path

    def check(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.ConfigurationError` for settings that contradict
        each other or the store; by default accept all."""

    @abstractmethod
    def backend(self) -> ChainBackend:
        """Return the mount's backend, which is not opened yet; raise the errors of
        :meth:`check`."""

    def dialect(self) -> str:
        """Return the name of the dialect to serve if NODERPC_DIALECT is not set; by default
        the default of that setting."""
        return self.settings.dialect

    @abstractmethod
    def description(self) -> str:
        """Return the text that ``noderpc start`` shows beside the chain ID, such as ``followed
        at http://node:26657``."""

    def nodes(self) -> Sequence[str]:
        """Return the addresses of the upstream nodes without credentials; empty by default."""
        return ()

    def processes(self) -> Iterable[Process]:
        """Return the processes of ``noderpc start``; by default NODERPC_WORKERS processes that
        serve requests."""
        return [Process()] * worker_count(self.settings)

    def watch(
        self, dialect: str, *, has_bars: bool
    ) -> AbstractContextManager[Callable[[], Mapping[str, Any]]]:
        """Watch the chain in the parent process of ``noderpc start``.

        Yield a function that returns settings that have changed since the start, and that is
        called several times a second. ``dialect`` is the result of :meth:`dialect`, or empty
        if NODERPC_DIALECT is set. With ``has_bars``, progress is shown in the terminal. By
        default settings never change.
        """
        return nullcontext(dict)


def chain_source(settings: Settings, path: str) -> ChainSource | None:
    """Return the source that the settings select, or ``None`` for an embedded chain; raise
    :exc:`~flask_noderpc.errors.InvalidSetting` if they select several."""
    asked = {
        name: setting
        for feature in features()
        for setting, name in feature.chain_sources.items()
        if settings.value(setting)
    }
    if len(asked) > 1:
        keys = " and ".join(PREFIX + setting.upper() for setting in asked.values())
        raise InvalidSetting(
            f"{keys}: expected one of these settings, got several; set only one"
        )
    for name in asked:
        source: ChainSource = load(name)(settings, path)
        return source
    return None


log = logging.getLogger("flask_noderpc.dev")
# Accounts are logged by a separate logger, because ``noderpc start`` shows them itself.
accounts_log = log.getChild("accounts")


class DevAccounts(ABC):
    """Funded accounts of an application's development chains."""

    @abstractmethod
    def app_state(self, settings: Settings) -> bytes:
        """Return the genesis state of a new chain with the accounts; raise
        :exc:`~flask_noderpc.errors.InvalidSetting`."""

    @abstractmethod
    def log(self, settings: Settings, genesis: Genesis) -> None:
        """Log the accounts when a chain starts, and a warning if the chain began without
        them."""

    @abstractmethod
    def banner(self, settings: Settings, home: Path, curl: str) -> Iterator[tuple[str, str]]:
        """Yield lines for the startup message of ``noderpc start``, each as title and text.

        ``home`` is the chain's folder, ``curl`` the command for requests to its node RPC.
        """


def dev_accounts_of(kind: ApplicationKind) -> DevAccounts | None:
    """Return the accounts of an application's development chains; ``None`` if it has none."""
    accounts: DevAccounts | None = load(kind.dev_accounts)() if kind.dev_accounts else None
    return accounts
