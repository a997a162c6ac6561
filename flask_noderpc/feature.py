"""Features: the parts that each adds to the core.

A feature is a folder of this package with a ``feature.py``, whose ``FEATURE`` declares what the
feature adds. The core imports no feature: it asks :func:`features`. A ``feature.py`` holds
declarations alone, and loads what they need when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from .domain.abci import Event


@dataclass(frozen=True, slots=True)
class EventAliases:
    """Aliases of event types, and how the values of their keys are compared."""

    types: frozenset[str]
    """The types, such as ``transfer``, with their aliases."""
    with_aliases: Callable[[Sequence[Event]], Sequence[Event]]
    """Return the events of a transaction, among them some of these types, with what the type
    is called besides."""
    ignores_case: Callable[[str], bool]
    """Return true for a value that is compared without case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HitIndex:
    """An index that SQL stores keep of each block: which values occur where."""

    event_types: frozenset[str]
    """Transactions without an event of these types have no hits, and are not looked at."""
    hits: str
    """Function that yields the hits of such transactions of a block, given each with its
    result: the 64-bit key of a value, and a number below 2**20 in the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlStore:
    """A store of chains that URLs of a scheme name.

    Its parts are named as ``package.module:name``, and loaded when they are used.
    """

    location: str
    """Class of a :class:`~flask_noderpc.backends.base.location.Location`, made of a URL."""
    open: str
    """Function that returns the store at a location, with the options ``replica``,
    ``read_only``, ``limits`` and ``poll_s``."""
    identity: str
    """Function that returns the identity of the chain at a location without opening it, or
    ``None``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationKind:
    """An application that NODERPC_APPLICATION names.

    Its functions and classes are named as ``package.module:name``, and loaded when they are
    used.
    """

    make: str
    """Function that returns what makes the application from its committed state. Its arguments
    are the settings, the store's path, and the memory that the caches of a process share."""
    dev_accounts: str = ""
    """Subclass of :class:`~flask_noderpc.chain.dev_accounts.DevAccounts`: the funded accounts
    that NODERPC_DEV brings. Without one, NODERPC_DEV is refused."""
    blocks_needed: str = ""
    """Function that returns how many of the latest blocks the application needs, given the
    committed state of a store: 1 if the state is another application's."""
    genesis_members: frozenset[str] = frozenset()
    """Members of ``app_state`` by which ``noderpc genesis check`` recognizes its documents."""
    makes_first_block: bool = False
    """True to make a first block at once: its clients can't use a chain without one."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of settings of ``noderpc start`` with this application."""
    dev_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Further defaults with ``--dev``."""
    is_dev_default: bool = False
    """True for the application of ``noderpc start --dev`` without ``--application``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSet:
    """Pages for people about the chain of a mount, as a blueprint of Flask.

    An app registers the blueprint itself; ``noderpc start`` does so if a flag asks for it.
    """

    blueprint: str
    """The blueprint, named as ``package.module:name``; its module makes it with ``__name__``.
    The endpoint of its first page is ``overview``. Registering it stores its name and the mount
    that it shows in ``app.extensions["noderpc_explorers"]``."""
    path: str
    """Path of its first page under ``noderpc start``."""
    help: str
    """Sentence of the flag in ``noderpc start --help``."""


def load(name: str) -> Any:
    """Return what a feature names as ``package.module:name``."""
    module, _, member = name.partition(":")
    return getattr(import_module(module), member)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """The parts that one feature adds to the core; each is optional."""

    name: str
    applications: Mapping[str, ApplicationKind] = field(default_factory=dict)
    """Applications of the embedded chain by the names that NODERPC_APPLICATION takes."""
    event_aliases: EventAliases | None = None
    """How queries find the events of its transactions."""
    routes: str = ""
    """Rows of the node RPC, named as ``package.module:name``."""
    dev_routes: str = ""
    """Further rows of development chains, which only callers on the node's machine may use."""
    abci_query: str = ""
    """Function that answers a call of ``abci_query`` before the application does. Its arguments
    are the context, the path, the data and the height; it returns ``None`` to leave the query
    to the application."""
    page_sets: Mapping[str, PageSet] = field(default_factory=dict)
    """Pages for people, by the names of their flags of ``noderpc start``."""
    other_hashes: str = ""
    """Function that returns further hashes by which a transaction is known, given its bytes:
    Ethereum's hash, for one. It returns none for bytes that it does not know."""
    hit_indexes: Mapping[str, HitIndex] = field(default_factory=dict)
    """Indexes that SQL stores keep, by the names of their tables."""
    stores: Mapping[str, UrlStore] = field(default_factory=dict)
    """Stores by the schemes of the URLs that name them."""


@cache
def features() -> tuple[Feature, ...]:
    """Return the features of this package, in the order of their names."""
    package = Path(__file__).parent
    names = sorted(each.parent.name for each in package.glob("*/feature.py"))
    return tuple(import_module(f".{name}.feature", __package__).FEATURE for name in names)
