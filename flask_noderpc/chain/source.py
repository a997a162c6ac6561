"""Parts that features offer to a mount: chains in place of an embedded one, and the
accounts of development chains (NODERPC_DEV), whose keys anybody knows."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..domain.genesis import Genesis
from ..errors import InvalidSetting
from ..feature import ApplicationKind, features, load
from ..settings import PREFIX, Settings

if TYPE_CHECKING:
    from ..backends.base.backend import ChainBackend


@dataclass(frozen=True, slots=True)
class Process:
    """One of the processes among which ``noderpc start`` divides the work."""

    serves: bool = True
    """False for a process that listens nowhere; it calls
    :meth:`~flask_noderpc.ChainBackend.follow`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that differ in this process."""


class ChainSource(ABC):
    """A chain that settings ask for in place of an embedded one, such as that of other nodes.

    ``path`` is the file or URL of the mount's store, NODERPC_DATABASE or its default. Nothing
    is opened before a method is called.
    """

    def __init__(self, settings: Settings, path: str) -> None:
        self.settings, self.path = settings, path

    def check(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.ConfigurationError` for settings that do not fit
        together, or not to the store; by default all fit."""

    @abstractmethod
    def backend(self) -> ChainBackend:
        """Return the backend of a mount, which opens nothing yet; raise as :meth:`check`."""

    def dialect(self) -> str:
        """Return the name of the dialect that is served where NODERPC_DIALECT is not set; by
        default its default."""
        return self.settings.dialect

    @abstractmethod
    def description(self) -> str:
        """Return what ``noderpc start`` shows of the chain beside its id, such as ``followed at
        http://node:26657``."""

    def nodes(self) -> Sequence[str]:
        """Return the addresses of the nodes that are asked, without credentials; empty by
        default."""
        return ()

    def processes(self) -> Iterable[Process]:
        """Return the processes of ``noderpc start``; by default as many that serve as
        NODERPC_WORKERS says."""
        return [Process()] * self.settings.workers

    def watch(
        self, dialect: str, *, has_bars: bool
    ) -> AbstractContextManager[Callable[[], Mapping[str, Any]]]:
        """Watch the chain from the parent of these processes; yield a function that returns the
        settings that have changed since the start, which is called several times a second.

        ``dialect`` is the one that :meth:`dialect` returned, empty where NODERPC_DIALECT is
        set. With ``has_bars``, progress is shown in the terminal. By default nothing changes.
        """
        return nullcontext(dict)


def chain_source(settings: Settings, path: str) -> ChainSource | None:
    """Return the source that settings ask for, or ``None`` for an embedded chain; raise
    :exc:`~flask_noderpc.errors.InvalidSetting` if they ask for several."""
    asked = {
        name: setting
        for feature in features()
        for setting, name in feature.chain_sources.items()
        if settings.value(setting)
    }
    if len(asked) > 1:
        keys = " and ".join(PREFIX + setting.upper() for setting in asked.values())
        raise InvalidSetting(f"{keys} ask for chains from different sources: set one of them")
    for name in asked:
        source: ChainSource = load(name)(settings, path)
        return source
    return None


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
