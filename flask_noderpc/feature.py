"""Features: the parts that each adds to the core.

A feature is a folder of this package with a ``feature.py``, whose ``FEATURE`` declares what the
feature adds; other distributions name theirs by an entry point of the group
``flask_noderpc.features``. The core imports no feature: it asks :func:`features`. A
``feature.py`` holds declarations alone, and names what is loaded when it is used.
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

    Blocks that were stored without the feature are found by the names of their events alone.
    Their index has other entries than with the feature, so ``noderpc verify`` refuses it.
    """

    types: frozenset[str]
    """The types, such as ``transfer``, with their aliases."""
    with_aliases: Callable[[Sequence[Event]], Sequence[Event]]
    """Return the events of a transaction, with a copy under its other name beside each event of
    these types."""
    ignores_case: Callable[[str], bool]
    """Return true for a value that is compared without case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HitIndex:
    """An index that SQL stores keep of each block: which values occur where.

    The capability ``flask_noderpc.backends.sql.capabilities.HITS`` of a backend searches it.
    """

    event_types: frozenset[str]
    """Transactions without an event of these types have no hits, and are not looked at."""
    hits: str
    """Function that is given such transactions of a block, each with its result. It yields
    pairs: a key, which is a hash of a value as a signed integer of at most 64 bits, and the
    number of its place in the block, such as the number of a log. Numbers above 2**20 - 1 count
    as that one. An error that it raises stops the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A part of an API that ``noderpc start`` serves at addresses of its own."""

    name: str
    title: str
    address: str
    """Setting of its addresses."""
    tls: tuple[str, str] = ("tls_cert_file", "tls_key_file")
    """Settings of its certificate and key."""
    endpoint: str
    """Endpoint that is served at the root of these addresses."""
    scheme: str = "http"
    is_rpc: bool = False
    """True if the path takes bodies of JSON-RPC and nothing else."""
    middleware: str = "flask_noderpc.server.app:PrefixMiddleware"
    """Class of a WSGI application, made of the mount's application and of the path of the
    endpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """An API that mounts serve beside the node's RPC."""

    setting: str
    """Setting that enables it."""
    layer: str
    """Function that returns its :class:`~flask_noderpc.web.layers.Layer`."""
    prefixes: tuple[str, ...] = ()
    """How the names of its methods begin: the settings of allowed and denied methods may name
    them, also in a mount that does not serve the API."""
    rows: str = ""
    """Keyword argument of ``NodeRPC`` that takes further methods for this API; empty where it
    takes none."""
    check: str = ""
    """Function that checks the settings of the API where it is not enabled."""
    drives_chain: bool = False
    """True if it has methods that drive a development chain: the node RPC's own are left out
    then."""
    about: str = ""
    """Function that returns what ``noderpc start`` shows of an embedded chain for this API,
    given the settings."""
    clients: str = ""
    """Function that yields lines of ``noderpc start`` for users of clients, each a title and a
    text. Its arguments are the settings, the URL of the first surface, empty where there is
    none, and a function that returns how a setting is given, such as ``--dev`` for ``dev``."""
    surfaces: tuple[Surface, ...] = ()


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
    replica_setting: str = ""
    """Setting that names a replica of the store; empty for a store that has no replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationKind:
    """An application that NODERPC_APPLICATION names.

    Its functions and classes are named as ``package.module:name``, and loaded when they are
    used.
    """

    make: str
    """Function that returns a factory, which makes the application from its committed state.
    The arguments of the function are the settings, the store's path, and the memory that the
    caches of a process share."""
    dev_accounts: str = ""
    """Subclass of :class:`~flask_noderpc.chain.source.DevAccounts`: the funded accounts
    that NODERPC_DEV brings. Without one, NODERPC_DEV is refused."""
    state_key: bytes = b""
    """A key that is in the committed state of this application's chains, and of no others."""
    blocks_needed: int = 1
    """How many of the latest blocks such a chain needs: ``noderpc prune`` retains them."""
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
    """The blueprint, named as ``package.module:name`` and made with ``__name__``, by which
    ``flask noderpc start`` finds it in an app. The endpoint of its first page is ``overview``.
    One that stores its name and the mount that it shows in
    ``app.extensions["noderpc_explorers"]`` when it is registered is linked by the index."""
    path: str
    """Path of its first page under ``noderpc start``."""
    help: str
    """Sentence of the flag in ``noderpc start --help``."""


def load(name: str) -> Any:
    """Return what a feature names as ``package.module:name``.

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
    """Frozen dataclass of its settings, whose fields are made by
    :func:`flask_noderpc.settings.setting`."""
    title: str = ""
    """Title of the group of its settings; the group has the feature's name."""
    apis: tuple[Api, ...] = ()
    """APIs beside the node's RPC."""
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
    Ethereum's hash, for one. It returns an empty tuple for bytes that it does not know."""
    hit_indexes: Mapping[str, HitIndex] = field(default_factory=dict)
    """Indexes that SQL stores keep, by the names of their tables."""
    stores: Mapping[str, UrlStore] = field(default_factory=dict)
    """Stores by the schemes of the URLs that name them."""
    chain_sources: Mapping[str, str] = field(default_factory=dict)
    """Classes of :class:`~flask_noderpc.chain.source.ChainSource`, named as
    ``package.module:name``, by the settings that ask for them: a mount without a backend that
    has a value for such a setting serves the chain of that source, not an embedded one."""
    commands: tuple[str, ...] = ()
    """Modules that add commands to ``flask_noderpc.cli.node.main`` (``noderpc …``) or
    ``flask_noderpc.cli.app.cli`` (``flask noderpc …``) when they are imported."""


GROUP = "flask_noderpc.features"
"""Entry points by which other distributions bring features."""


@cache
def features() -> tuple[Feature, ...]:
    """Return the features of this package and then those of other distributions, both in the
    order of their names.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for one that can't be loaded, and for
    two parts of one name.
    """
    package = Path(__file__).parent
    names = sorted(each.parent.name for each in package.glob("*/feature.py"))
    own = tuple(import_module(f".{name}.feature", __package__).FEATURE for name in names)
    # Imported here, as importlib.metadata takes longer to load than all of these files.
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
"""Parts whose names are those of one feature only, by their fields of :class:`Feature`."""

_OF_CORE = (
    ("application", "kvstore"),
    ("application", "merkle"),
    # The indexes of events have tables of these names.
    ("index", "tx"),
    ("index", "block"),
)

# Part of the names of tables, which need no quotes.
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
            f"{shown} can't be loaded: {type(error).__name__}: {error}; mend or remove it"
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
