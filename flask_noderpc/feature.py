"""Features: optional parts that add settings, APIs, applications, stores and commands to the
core.

A feature is a folder of this package with a ``feature.py``, whose ``FEATURE`` declares what
the feature adds; other distributions declare theirs by entry points of the group
``flask_noderpc.features``. The core imports no feature, but calls :func:`features`. A
``feature.py`` contains only declarations; the modules that it names are imported at their
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

from .errors import ConfigurationError, short_repr

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .domain.abci import Event


@dataclass(frozen=True, slots=True)
class EventAliases:
    """Aliases of event types, and how the values of their keys are compared.

    Blocks that were stored without the feature are only found by the original names of their
    events. ``noderpc verify`` then reports their index as wrong, as it expects entries with
    the aliases.
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
    """Types of events that may have hits; transactions without such an event are skipped."""
    hits: str
    """Function that is called with such transactions of a block, each with its result. It
    yields pairs: a key, which is a hash of a value as a signed integer of at most 64 bits, and
    a number in the block, such as the index of a log. Numbers above 2**20 - 1 are stored as
    that number. If the function raises an error, the block is not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A part of an API that ``noderpc start`` serves at separate addresses."""

    name: str
    title: str
    address: str
    """Name of the setting with its addresses."""
    tls: tuple[str, str] = ("tls_cert_file", "tls_key_file")
    """Names of the settings with its certificate and key."""
    endpoint: str
    """Flask endpoint that is served at the root of these addresses."""
    scheme: str = "http"
    is_rpc: bool = False
    """True if the endpoint only accepts JSON-RPC bodies."""
    middleware: str = "flask_noderpc.server.app:PrefixMiddleware"
    """Class of a WSGI application, created from the mount's application and the path of the
    endpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """An API that mounts serve in addition to the node's RPC."""

    setting: str
    """Name of the setting that enables the API."""
    layer: str
    """Function that returns its :class:`~flask_noderpc.web.layers.Layer`."""
    prefixes: tuple[str, ...] = ()
    """Prefixes of its methods' names, which NODERPC_ALLOW_METHODS and NODERPC_DENY_METHODS may
    contain even in a mount that does not serve the API."""
    rows: str = ""
    """Keyword argument of ``NodeRPC`` for further methods of this API; empty if the API can't
    have further methods."""
    check: str = ""
    """Function that checks the API's settings. It is called before ``noderpc start`` starts a
    chain, and by a mount that does not serve the API."""
    drives_chain: bool = False
    """True if the API has methods that control a development chain; the node RPC then omits
    its own such methods."""
    about: str = ""
    """Function that is called with the settings and the store's path, and returns text about an
    embedded chain that ``noderpc start`` prints."""
    clients: str = ""
    """Function that yields lines about clients for the output of ``noderpc start``, each as
    title and text. Its arguments are the settings, the URL of the first surface (or an empty
    string), and a function that returns the flag of a setting, such as ``--dev`` for
    ``dev``."""
    surfaces: tuple[Surface, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlStore:
    """A store of chains, chosen by the scheme of a URL.

    Its classes and functions are named as ``package.module:name``, and imported at first use.
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
    """Name of the setting with the URL of a replica; empty if replicas are not supported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationKind:
    """An application that NODERPC_APPLICATION names.

    Its functions and classes are named as ``package.module:name``, and imported at first use.
    """

    make: str
    """Function that returns another function, which creates the application from its committed
    state. Its arguments are the settings, the store's path, and the memory limit that the
    caches of a process share."""
    txs: str = ""
    """Description of its transactions, such as ``transactions key=value``; an API refuses to
    send it transactions of another kind. Empty if it may accept any transactions."""
    warn: str = ""
    """Function that logs warnings when a chain without NODERPC_DEV starts. Its arguments are
    the chain's home and its genesis."""
    dev_accounts: str = ""
    """Subclass of :class:`~flask_noderpc.chain.source.DevAccounts` with the funded accounts of
    NODERPC_DEV, which is refused if this is empty."""
    executor: str = ""
    """Function that returns the command of the executor process that a new block needs, which
    ``noderpc start`` starts at once. Its arguments are the settings and the store's path."""
    state_key: bytes = b""
    """A key that only this application's chains have in their committed state."""
    blocks_needed: int = 1
    """Number of latest blocks that the application needs, and that ``noderpc prune``
    retains."""
    genesis_members: frozenset[str] = frozenset()
    """Members of ``app_state`` by which ``noderpc genesis check`` recognizes this
    application's documents."""
    makes_first_block: bool = False
    """True to produce the first block at once, because clients can't use a chain without
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
    """The blueprint, named as ``package.module:name``. It must be created with ``__name__``,
    by which ``flask noderpc start`` finds it in an app, and its first page must have the
    endpoint ``overview``. If the blueprint stores its name and the mount that it shows in
    ``app.extensions["noderpc_explorers"]`` when it is registered, the index page links to
    it."""
    path: str
    """Path of its first page under ``noderpc start``."""
    help: str
    """Sentence about the flag in ``noderpc start --help``."""


def load(name: str) -> Any:
    """Return the object that a feature names as ``package.module:name``.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the module has no such name, and
    :exc:`ModuleNotFoundError` if the module or a package that it imports is missing.
    """
    module, _, member = name.partition(":")
    found = import_module(module)
    try:
        return getattr(found, member)
    except AttributeError:
        raise ConfigurationError(
            f"a feature: expected the name of an object as package.module:name, got {name!r},"
            f" and {module} has no {member!r}; fix the feature"
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
    routes_setting: str = ""
    """Name of the setting that enables these routes; empty to have them on every mount."""
    dev_routes: str = ""
    """Further routes of development chains, for callers on the node's machine only."""
    abci_query: str = ""
    """Function that handles a call of ``abci_query`` before the application does. Its arguments
    are the context, the path, the data and the height; it returns ``None`` to leave the query
    to the application."""
    account_facts: str = ""
    """Function that returns what pages show of an account, as
    :class:`~flask_noderpc.domain.facts.Fact`, empty for an account that it does not know. Its
    arguments are the backend, a function that runs ``abci_query`` for the reader of the page
    (given path, data and height), and the address."""
    tx_facts: str = ""
    """Function that returns :class:`~flask_noderpc.domain.facts.TxFacts` of a transaction, or
    ``None`` for one that it does not know; a page shows the facts of each feature. Its
    arguments are the first two of ``account_facts``, a function that calls a method of
    Ethereum's JSON-RPC for the reader of the page (``None`` if the mount does not serve it),
    the bytes of the transaction, and its result, ``None`` while the transaction is pending."""
    tx_line: str = ""
    """Function that returns the :class:`~flask_noderpc.domain.facts.TxLine` of a transaction
    for lists, or ``None`` for one that it does not know. Its arguments are the bytes and the
    result, which is ``None`` for a pending transaction. A list has up to 100 transactions, with
    any bytes, so the function must be fast and read no state. The feature that comes last by
    name is called first, and other distributions before this package, so that a distribution
    can describe its own transactions."""
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
    starts: Mapping[str, str] = field(default_factory=dict)
    """Flags of ``noderpc start`` that serve a chain of this feature, with a few words about it,
    which a node without flags shows."""
    evm_calls: str = ""
    """Function that returns a :class:`~flask_noderpc.backends.base.capabilities.ForwardedCalls`
    to the Ethereum JSON-RPC of nodes. Its arguments are the settings, the URLs, the name of the
    setting that has them, and a function that returns height and hash of a block of their
    chain, or ``None``."""
    commands: tuple[str, ...] = ()
    """Modules that, when they are imported, add commands to ``flask_noderpc.cli.node.main``
    (``noderpc …``) or ``flask_noderpc.cli.app.cli`` (``flask noderpc …``)."""


GROUP = "flask_noderpc.features"
"""Group of entry points by which other distributions add features."""


@cache
def features() -> tuple[Feature, ...]:
    """Return the features of this package, followed by those of other distributions, each
    sorted by name.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if a feature can't be loaded, or if
    two features declare the same name.
    """
    package = Path(__file__).parent
    names = sorted(each.parent.name for each in package.glob("*/feature.py"))
    own = tuple(import_module(f".{name}.feature", __package__).FEATURE for name in names)
    # Import this late, as importlib.metadata takes longer to import than all feature.py files.
    from importlib.metadata import entry_points

    found = own + tuple(_loaded(each) for each in sorted(entry_points(group=GROUP)))
    _check_names(found)
    return found


def replica_settings() -> list[str]:
    """Return the names of settings for replicas of stores."""
    stores = (store for each in features() for store in each.stores.values())
    return sorted({store.replica_setting for store in stores} - {""})


_NAMED = {
    "applications": "application",
    "page_sets": "page set",
    "hit_indexes": "index",
    "stores": "store",
}
"""Fields of :class:`Feature` whose keys must be unique among features, and what they name."""

_OF_CORE = (
    ("application", "kvstore"),
    ("application", "merkle"),
    # The event indexes have tables with these names.
    ("index", "tx"),
    ("index", "block"),
)

# Index names are parts of table names, which are not quoted in SQL.
_INDEX_NAME = re.compile("[a-z][a-z0-9_]{0,39}")


def _check_names(found: Iterable[Feature]) -> None:
    owners = dict.fromkeys(_OF_CORE, "the core")
    for feature in found:
        own = [(what, name) for part, what in _NAMED.items() for name in getattr(feature, part)]
        for what, name in [("feature", feature.name), *own]:
            if what == "index" and not _INDEX_NAME.fullmatch(name):
                raise ConfigurationError(
                    f"the feature {feature.name!r}: expected an index name of at most 40 small"
                    f" letters, digits and _, beginning with a letter, got {name!r}; rename it"
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
            f"{shown}: expected a Feature of flask_noderpc.feature at {point.value}, got"
            f" {short_repr(found)}; fix or remove it"
        )
    return found


def apis() -> Iterator[Api]:
    """Yield the APIs of all features."""
    for feature in features():
        yield from feature.apis


def page_sets() -> dict[str, PageSet]:
    """Return the page sets of all features, by name."""
    return {name: pages for each in features() for name, pages in each.page_sets.items()}


_CORE_KINDS = {
    name: ApplicationKind(
        make=f"flask_noderpc.chain.from_settings:{name}", txs="transactions key=value"
    )
    for name in ("kvstore", "merkle")
}


@cache
def application_kinds() -> Mapping[str, ApplicationKind]:
    """Return the kinds of applications, by their names."""
    kinds = dict(_CORE_KINDS)
    for feature in features():
        kinds.update(feature.applications)
    return kinds


def kind_of(application: object) -> ApplicationKind | None:
    """Return the kind of an application, by the name of its class or of a base class."""
    names = (getattr(each, "name", "") for each in type(application).__mro__)
    return next(filter(None, map(application_kinds().get, names)), None)


def application_names() -> tuple[str, ...]:
    """Return the names that NODERPC_APPLICATION accepts."""
    return tuple(application_kinds())
