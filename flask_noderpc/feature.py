"""Features, and the parts that they add to the core.

A feature is a folder of this package with a ``feature.py``, whose ``FEATURE`` declares what the
feature adds; other distributions name theirs by an entry point of the group
``flask_noderpc.features``. The core imports no feature; it calls :func:`features`. A
``feature.py`` contains only declarations, with names of modules that are imported at their
first use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .domain.abci import Event
from .errors import ConfigurationError, short_repr

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True, slots=True)
class EventAliases:
    """Aliases of event types, and how the values of their keys are compared.

    Blocks that were stored without the feature are found only by the original names of their
    events. Their index has other entries than with the feature, so ``noderpc verify`` refuses
    it.
    """

    types: frozenset[str]
    """Event types, such as ``transfer``, that have aliases."""
    with_aliases: Callable[[Sequence[Event]], Sequence[Event]]
    """Function that returns the events of a transaction, with each event of these types
    followed by a copy under its other name."""
    ignores_case: Callable[[str], bool]
    """Function that returns true for a value that is compared case-insensitively."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HitIndex:
    """An index that SQL stores maintain of each block: which values occur where.

    The capability ``flask_noderpc.backends.sql.capabilities.HITS`` of a backend searches it.
    """

    event_types: frozenset[str]
    """Transactions without an event of these types have no hits, and are skipped."""
    hits: str
    """Function that gets such transactions of a block, each with its result. It yields pairs: a
    key, which is a hash of a value as a signed integer of at most 64 bits, and the number of
    its position in the block, such as the index of a log. Numbers above 2**20 - 1 count as that
    number. An error that it raises stops the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A part of an API that ``noderpc start`` serves at separate addresses."""

    name: str
    title: str
    address: str
    """Setting with its addresses."""
    tls: tuple[str, str] = ("tls_cert_file", "tls_key_file")
    """Settings with its certificate and key."""
    endpoint: str
    """Endpoint that is served at the root of these addresses."""
    scheme: str = "http"
    is_rpc: bool = False
    """True if the path accepts only bodies of JSON-RPC."""
    middleware: str = "flask_noderpc.server.app:PrefixMiddleware"
    """Class of a WSGI application, created from the mount's application and the path of the
    endpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """An API that mounts serve in addition to the node's RPC."""

    setting: str
    """Setting that enables it."""
    layer: str
    """Function that returns its :class:`~flask_noderpc.web.layers.Layer`."""
    prefixes: tuple[str, ...] = ()
    """Prefixes of the names of its methods: the settings of allowed and denied methods may name
    them, also in a mount that does not serve the API."""
    rows: str = ""
    """Keyword argument of ``NodeRPC`` that accepts further methods for this API; empty if none
    are accepted."""
    check: str = ""
    """Function that checks the settings of the API if it is not enabled."""
    drives_chain: bool = False
    """True if it has methods that control a development chain: the node RPC's own methods for
    that are then omitted."""
    about: str = ""
    """Function that returns what ``noderpc start`` prints about an embedded chain for this API,
    given the settings."""
    clients: str = ""
    """Function that yields lines of ``noderpc start`` for users of clients, each a title and a
    text. Its arguments are the settings, the URL of the first surface (empty without one), and
    a function that returns how a setting is given, such as ``--dev`` for ``dev``."""
    surfaces: tuple[Surface, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlStore:
    """A store of chains, chosen by the scheme of a URL.

    Its parts are named as ``package.module:name``, and imported at first use.
    """

    location: str
    """Class of a :class:`~flask_noderpc.backends.base.location.Location`, created from a
    URL."""
    open: str
    """Function that returns the store at a location, with the options ``replica``,
    ``read_only``, ``limits`` and ``poll_s``."""
    identity: str
    """Function that returns the identity of the chain at a location without opening it, or
    ``None``."""
    replica_setting: str = ""
    """Setting with a replica of the store; empty if replicas are not supported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationKind:
    """An application that NODERPC_APPLICATION names.

    Its functions and classes are named as ``package.module:name``, and imported at first use.
    """

    make: str
    """Function that returns a factory, which creates the application from its committed state.
    The arguments of the function are the settings, the store's path, and the memory limit that
    the caches of a process share."""
    dev_accounts: str = ""
    """Subclass of :class:`~flask_noderpc.chain.source.DevAccounts`: the funded accounts of
    NODERPC_DEV. Without one, NODERPC_DEV is refused."""
    state_key: bytes = b""
    """A key in the committed state of this application's chains, and of no other
    application's."""
    blocks_needed: int = 1
    """Number of latest blocks that such a chain needs: ``noderpc prune`` retains them."""
    genesis_members: frozenset[str] = frozenset()
    """Members of ``app_state`` by which ``noderpc genesis check`` recognizes its documents."""
    makes_first_block: bool = False
    """True to produce a first block at once, because clients can't use a chain without
    blocks."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of settings of ``noderpc start`` with this application."""
    dev_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Further defaults with ``--dev``."""
    is_dev_default: bool = False
    """True for the application of ``noderpc start --dev`` without ``--application``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSet:
    """Web pages about the chain of a mount, as a Flask blueprint.

    An app registers the blueprint itself; ``noderpc start`` does so if a flag is given.
    """

    blueprint: str
    """The blueprint, named as ``package.module:name`` and created with ``__name__``, by which
    ``flask noderpc start`` finds it in an app. The endpoint of its first page is ``overview``.
    If it stores its name and the mount that it shows in ``app.extensions["noderpc_explorers"]``
    when it is registered, the index page links to it."""
    path: str
    """Path of its first page under ``noderpc start``."""
    help: str
    """Sentence about the flag in ``noderpc start --help``."""


def load(name: str) -> Any:
    """Return the object that a feature names as ``package.module:name``.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the module has no such name, and
    :exc:`ModuleNotFoundError` without the module or a package that it imports.
    """
    module, _, member = name.partition(":")
    found = import_module(module)
    try:
        return getattr(found, member)
    except AttributeError:
        raise ConfigurationError(
            f"a feature names {name!r}, and {module} has no {member!r}: name something that is"
            " there, as package.module:name"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """The parts that one feature adds to the core; each is optional."""

    name: str
    settings: type[Any] | None = None
    """Frozen dataclass of its settings, whose fields are created by
    :func:`flask_noderpc.settings.setting`."""
    title: str = ""
    """Title of the group of its settings; the group has the feature's name."""
    apis: tuple[Api, ...] = ()
    """APIs in addition to the node's RPC."""
    applications: Mapping[str, ApplicationKind] = field(default_factory=dict)
    """Applications of the embedded chain by their names in NODERPC_APPLICATION."""
    event_aliases: EventAliases | None = None
    """Aliases of event types, for queries."""
    routes: str = ""
    """Routes of the node RPC, named as ``package.module:name``."""
    dev_routes: str = ""
    """Further routes of development chains, for callers on the node's machine only."""
    abci_query: str = ""
    """Function that handles a call of ``abci_query`` before the application does. Its arguments
    are the context, the path, the data and the height; it returns ``None`` to leave the query
    to the application."""
    page_sets: Mapping[str, PageSet] = field(default_factory=dict)
    """Web pages, by the names of their flags of ``noderpc start``."""
    other_hashes: str = ""
    """Function that returns further hashes of a transaction, such as Ethereum's, given its
    bytes. It returns an empty tuple for bytes of another kind."""
    hit_indexes: Mapping[str, HitIndex] = field(default_factory=dict)
    """Indexes that SQL stores maintain, by the names of their tables."""
    stores: Mapping[str, UrlStore] = field(default_factory=dict)
    """Stores by the schemes of their URLs."""
    chain_sources: Mapping[str, str] = field(default_factory=dict)
    """Classes of :class:`~flask_noderpc.chain.source.ChainSource`, named as
    ``package.module:name``, by the settings that select them: a mount without a backend, in
    which such a setting has a value, serves the chain of that source instead of an embedded
    chain."""
    commands: tuple[str, ...] = ()
    """Modules that add commands to ``flask_noderpc.cli.node.main`` (``noderpc …``) or
    ``flask_noderpc.cli.app.cli`` (``flask noderpc …``) when they are imported."""


GROUP = "flask_noderpc.features"
"""Group of entry points by which other distributions add features."""


@cache
def features() -> tuple[Feature, ...]:
    """Return the features of this package, followed by those of other distributions, each
    sorted by name.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if one can't be loaded, or two parts
    have the same name.
    """
    package = Path(__file__).parent
    names = sorted(each.parent.name for each in package.glob("*/feature.py"))
    own = tuple(import_module(f".{name}.feature", __package__).FEATURE for name in names)
    # Imported here, as importlib.metadata takes longer to import than all of these files.
    from importlib.metadata import entry_points

    found = own + tuple(_loaded(each) for each in sorted(entry_points(group=GROUP)))
    _check_names(found)
    return found


def replica_settings() -> list[str]:
    """Return the settings that name replicas of stores."""
    stores = (store for each in features() for store in each.stores.values())
    return sorted({store.replica_setting for store in stores} - {""})


_NAMED = {
    "applications": "application",
    "page_sets": "page set",
    "hit_indexes": "index",
    "stores": "store",
}
"""Kinds of parts whose names must be unique, by their fields of :class:`Feature`."""

_OF_CORE = (
    ("application", "kvstore"),
    ("application", "merkle"),
    # The indexes of events have tables with these names.
    ("index", "tx"),
    ("index", "block"),
)

# Part of table names that are not quoted.
_INDEX_NAME = re.compile("[a-z][a-z0-9_]{0,39}")


def _check_names(found: Iterable[Feature]) -> None:
    owners = dict.fromkeys(_OF_CORE, "the core")
    for feature in found:
        own = [(what, name) for part, what in _NAMED.items() for name in getattr(feature, part)]
        for what, name in [("feature", feature.name), *own]:
            if what == "index" and not _INDEX_NAME.fullmatch(name):
                raise ConfigurationError(
                    f"the feature {feature.name!r} has an index {name!r}: its name is small"
                    " letters, digits and _, a letter first, at most 40"
                )
            if (what, name) in owners:
                raise ConfigurationError(
                    f"the {what} {name!r} is declared by {owners[what, name]} and by the"
                    f" feature {feature.name!r}: give one of them another name, or remove one"
                )
            owners[what, name] = f"the feature {feature.name!r}"


def _loaded(point: EntryPoint) -> Feature:
    shown = f"the feature {point.name!r} of the distribution {point.dist and point.dist.name}"
    try:
        found = point.load()
    except Exception as error:
        raise ConfigurationError(
            f"{shown} can't be loaded: {type(error).__name__}: {error}; fix or remove it"
        ) from error
    if not isinstance(found, Feature):
        raise ConfigurationError(
            f"{shown} is {short_repr(found)}: {point.value} has to be a Feature of"
            " flask_noderpc.feature"
        )
    return found


def apis() -> Iterator[Api]:
    """Yield the APIs of all features."""
    for feature in features():
        yield from feature.apis


_CORE_KINDS = {
    "kvstore": ApplicationKind(make="flask_noderpc.chain.from_settings:kvstore"),
    "merkle": ApplicationKind(make="flask_noderpc.chain.from_settings:merkle"),
}


@cache
def application_kinds() -> Mapping[str, ApplicationKind]:
    """Return the kinds of applications by their names."""
    kinds = dict(_CORE_KINDS)
    for feature in features():
        kinds.update(feature.applications)
    return kinds


def application_names() -> tuple[str, ...]:
    """Return the names that NODERPC_APPLICATION takes."""
    return tuple(application_kinds())
