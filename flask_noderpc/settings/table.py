"""The table of settings, by group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

from ..errors import ConfigurationError, short_repr
from ..feature import Api, apis, application_names, features, replica_settings
from ..lru import DEFAULT_BYTES
from .kinds import (
    ADDRESSES,
    BYTES,
    CHAIN_ID,
    COUNT,
    NAMES,
    OPTIONAL_PATH,
    ORIGINS,
    PATH,
    PROCESSES,
    SECONDS,
    SWITCH,
    TEXT,
    Kind,
    integer,
    one_of,
)

T = TypeVar("T")

PREFIX = "NODERPC_"

GROUPS = {
    "first": "Usual settings",
    "chain": "The embedded chain",
    "rpc": "The node RPC",
    "access": "Access",
    "server": "The server",
}
"""Groups of settings by their names, with their titles; features have groups of their own."""

NEWCOMER = (
    "database",
    "home",
    "application",
    "dev",
    "block_interval",
    "dialect",
    "cors_origins",
    "rpc_laddr",
    "workers",
)
"""Settings that help and docs show first, before those of features that are usual."""


def setting(
    group: str,
    default: Any,
    kind: Kind,
    doc: str,
    flags: tuple[str, ...] = (),
    *,
    is_of_chain: bool = False,
    is_usual: bool = False,
) -> Any:
    """Return a dataclass field with its group, default, kind, sentence for the docs, and the
    flags that other nodes have for it.

    One that ``is_of_chain`` is the same for each mount that serves the chain. Help and docs
    show first what ``is_usual``.
    """
    metadata = {
        "group": group,
        "kind": kind,
        "doc": doc,
        "flags": flags,
        "is_of_chain": is_of_chain,
        "is_usual": is_usual,
    }
    return field(default=default, metadata=metadata)


def _kinds() -> list[type[Any]]:
    found = {each.name: each.settings for each in features() if each.settings is not None}
    for name, kind in found.items():
        if not is_dataclass(kind) or any("kind" not in row.metadata for row in fields(kind)):
            raise ConfigurationError(
                f"the settings of the feature {name!r} are {short_repr(kind)}: a dataclass is"
                " needed, each field made by flask_noderpc.settings.setting"
            )
    return list(found.values())


def _defaults() -> dict[type[Any], Any]:
    return {kind: kind() for kind in _kinds()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one mount, read once when it is registered."""

    database: str | None = setting(
        "chain",
        None,
        PATH,
        "SQLite file or ``postgresql://`` URL; ``noderpc.db`` in the instance folder.",
    )
    home: str | None = setting(
        "chain",
        None,
        PATH,
        "Folder of ``config/`` with genesis and keys; the database's folder.",
        is_of_chain=True,
    )
    application: str = setting(
        "chain",
        "kvstore",
        one_of(application_names),
        "Application of the embedded chain.",
        is_of_chain=True,
    )
    chain_id: str | None = setting(
        "chain",
        None,
        CHAIN_ID,
        "Chain id of a new chain, at most 50 bytes; ``test-chain-`` and six letters when not"
        " given.",
        is_of_chain=True,
    )
    moniker: str = setting(
        "chain", "flask-noderpc", TEXT, "Name of the node in ``status``.", is_of_chain=True
    )
    produce: bool = setting(
        "chain",
        True,
        SWITCH,
        "True to produce blocks in this process, if no other holds the lease.",
        is_of_chain=True,
    )
    accept_loss: bool = setting(
        "chain",
        False,
        SWITCH,
        "True to go on from the head of a store that has lost blocks which its development key"
        " signed; other keys never sign a height twice.",
        is_of_chain=True,
    )
    block_interval: float = setting(
        "chain",
        1.0,
        SECONDS,
        "Seconds between two blocks; with ``NODERPC_DEV`` and at most 0.1, each transaction"
        " gets its block at once.",
        is_of_chain=True,
    )
    empty_blocks: bool = setting(
        "chain",
        False,
        SWITCH,
        "True to produce blocks without transactions. The default of ``noderpc start``"
        " without ``--dev`` is true.",
        flags=("--consensus.create_empty_blocks",),
        is_of_chain=True,
    )
    retain_blocks: int | None = setting(
        "chain",
        None,
        COUNT,
        "Number of latest blocks to retain, with their results and events; all when not given.",
        is_of_chain=True,
    )
    max_tx_bytes: int = setting(
        "chain", 1_048_576, BYTES, "Maximum bytes of a transaction.", is_of_chain=True
    )
    mempool_size: int = setting(
        "chain", 5_000, COUNT, "Maximum transactions in the mempool.", is_of_chain=True
    )
    dev: bool = setting(
        "chain",
        False,
        SWITCH,
        "True to fund ten accounts with publicly known keys on a new chain of the application"
        " ``evm``, and let callers on this machine sign with them; or of ``bank``.",
        is_of_chain=True,
    )
    dialect: str = setting(
        "rpc",
        "document",
        one_of(
            lambda: (
                "document",
                "comet-0.34",
                "comet-0.37",
                "comet-0.38",
                "comet-0.39",
                "comet-0.40",
                "comet-1.0",
            )
        ),
        "Kind of node whose encodings are served: ``document``, ``comet-0.34``, ``comet-0.37``,"
        " ``comet-0.38``, ``comet-0.39``, ``comet-0.40`` or ``comet-1.0``. The genesis document"
        " is read by its rules.",
    )
    max_body_bytes: int = setting(
        "rpc",
        1_000_000,
        BYTES,
        "Maximum bytes of a request body; the host's ``MAX_CONTENT_LENGTH`` if lower.",
    )
    max_batch: int = setting("rpc", 10, COUNT, "Maximum calls in one JSON-RPC batch.")
    max_response_bytes: int = setting(
        "rpc",
        25_000_000,
        BYTES,
        "Maximum bytes of a response: of a batch, whose calls beyond it get an error, of a"
        " page of a search, a trace or a simulation.",
    )
    broadcast_timeout: float = setting(
        "rpc", 10.0, SECONDS, "Seconds that ``broadcast_tx_commit`` waits for its block."
    )
    max_waiting_calls: int = setting(
        "rpc",
        100,
        COUNT,
        "Maximum waiting calls of ``broadcast_tx_commit``, ``events`` and"
        " ``eth_sendRawTransactionSync`` in a process, divided fairly among clients.",
    )
    max_subscription_clients: int = setting(
        "rpc", 100, COUNT, "Maximum websocket clients with a subscription in a process."
    )
    max_subscriptions_per_client: int = setting(
        "rpc", 5, COUNT, "Maximum subscriptions of one websocket client."
    )
    event_buffer: int = setting(
        "rpc",
        200,
        COUNT,
        "Maximum events queued for a slow subscriber, besides the latest block's.",
    )
    search_timeout: float = setting(
        "rpc",
        2.0,
        SECONDS,
        "Maximum seconds of a search, its wait in the queue included; the rows that it may"
        " read grow with them.",
    )
    cache_bytes: int = setting(
        "rpc",
        DEFAULT_BYTES,
        integer(0, "BYTES"),
        "Maximum bytes of all caches of a process: responses, Ethereum's blocks and"
        " transactions, the EVM's state; the largest of an app's mounts counts. 0 caches no"
        " responses.",
    )
    exclude_routes: tuple[str, ...] = setting(
        "rpc",
        (),
        NAMES,
        "Routes whose GET path is left to the host; ``index`` (the list of endpoints at"
        " ``GET /``), ``evm``, ``readyz``, ``openapi``, ``try`` and ``metrics`` may be among"
        " them. JSON-RPC still answers them.",
    )
    metrics: bool = setting(
        "rpc",
        False,
        SWITCH,
        "True to serve metrics for Prometheus at ``GET /metrics``, to every client.",
    )
    log_calls: bool = setting(
        "rpc",
        False,
        SWITCH,
        "True to log each call to the logger ``flask_noderpc.calls`` at INFO: method, code,"
        " milliseconds, transport and address, never parameters.",
    )
    allowed_hosts: tuple[str, ...] = setting(
        "access",
        (),
        NAMES,
        "Hosts that requests may name, without ports; ``*`` stands for any part of a name. When"
        " not given all, but at loopback addresses of ``noderpc start`` only ``localhost`` and"
        " IP addresses, which are always served there.",
    )
    allow_methods: tuple[str, ...] = setting(
        "access",
        ("*",),
        NAMES,
        "RPC methods that are served; ``*`` stands for any part of a name.",
    )
    deny_methods: tuple[str, ...] = setting(
        "access", (), NAMES, "RPC methods that are not served, of those that are allowed."
    )
    rpc_unsafe: bool = setting(
        "access",
        False,
        SWITCH,
        "True to serve ``dial_seeds``, ``dial_peers`` and ``unsafe_flush_mempool``, which"
        " change the node for all its callers.",
    )
    trusted_proxies: int = setting(
        "access",
        0,
        integer(0),
        "Number of proxies in front of ``noderpc start`` whose forwarded headers are trusted.",
    )
    read_origins: tuple[str, ...] = setting(
        "access",
        ("*",),
        ORIGINS,
        "Origins, such as ``https://wallet.example``, whose pages may read and subscribe;"
        " ``*`` is any. Those of this site always may, and programs other than browsers.",
    )
    write_origins: tuple[str, ...] = setting(
        "access", (), ORIGINS, "Origins of other sites whose pages may also send transactions."
    )
    cors_origins: tuple[str, ...] = setting(
        "access",
        (),
        ORIGINS,
        "Origins whose pages may read responses in browsers (CORS); ``*`` is any, and stands"
        " for any part of a name.",
    )
    cors_headers: tuple[str, ...] = setting(
        "access",
        (
            "Origin",
            "Accept",
            "Content-Type",
            "X-Requested-With",
            "X-Server-Time",
            "X-Cosmos-Block-Height",
        ),
        NAMES,
        "Headers that pages of other sites may send.",
    )
    rpc_laddr: str = setting(
        "server",
        "tcp://127.0.0.1:26657",
        ADDRESSES,
        "Addresses of the node RPC: where ``noderpc start`` listens, and shown in ``status``.",
        flags=("--rpc.laddr",),
        is_of_chain=True,
    )
    tls_cert_file: str = setting(
        "server",
        "",
        OPTIONAL_PATH,
        "Certificate of the node RPC, for TLS.",
        flags=("--rpc.tls_cert_file",),
    )
    tls_key_file: str = setting(
        "server",
        "",
        OPTIONAL_PATH,
        "Private key of the node RPC's certificate.",
        flags=("--rpc.tls_key_file",),
    )
    workers: int = setting(
        "server",
        1,
        PROCESSES,
        "Serving processes. With more than one, ``noderpc start`` adds one that produces.",
    )
    server_threads: int | None = setting(
        "server",
        None,
        COUNT,
        "Threads of a process of your server, if their number is fixed: waiting calls and"
        " websockets leave some of them to requests. Those of gunicorn are detected.",
    )
    max_open_connections: int = setting(
        "server",
        900,
        COUNT,
        "Maximum connections at an address of a process of ``noderpc start``, without"
        " websockets and those whose call waits for a block; and as many open websockets in a"
        " process of any server, of both APIs together.",
    )
    max_connections_per_client: int | None = setting(
        "server",
        None,
        COUNT,
        "Maximum websockets of one client in a process, and its connections at an address of"
        " ``noderpc start``, with websockets and without trusted proxies; when not given 256,"
        " and no limit for clients of this machine.",
    )
    of_features: Mapping[type[Any], Any] = field(default_factory=_defaults)
    """Settings of features, by the classes that declare them."""

    def of(self, kind: type[T]) -> T:
        """Return the settings of a feature, by the class that declares them."""
        found: T = self.of_features[kind]
        return found

    def value(self, name: str) -> Any:
        """Return the value of any setting by its name."""
        owner = _owners()[name]
        return getattr(self if owner is Settings else self.of_features[owner], name)

    def replica(self) -> str | None:
        """Return the URL of the database's replica, if a setting of a feature names one."""
        return next(filter(None, map(self.value, replica_settings())), None)

    def apis(self) -> Iterator[Api]:
        """Yield the APIs of features that are enabled."""
        return (api for api in apis() if self.value(api.setting))

    def changed(self, **values: Any) -> Settings:
        """Return the settings with other values of some, by their names."""
        given: dict[type[Any], dict[str, Any]] = {}
        for name, value in values.items():
            given.setdefault(_owners()[name], {})[name] = value
        own = given.pop(Settings, {})
        features = {kind: replace(self.of_features[kind], **its) for kind, its in given.items()}
        return replace(self, **own, of_features={**self.of_features, **features})


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of :data:`SETTINGS`."""

    name: str
    key: str
    group: str
    kind: Kind
    value_type: str
    default: object
    doc: str
    owner: type[Any]
    """Class that declares it."""
    flags: tuple[str, ...] = ()
    """Flags of ``noderpc start``: those of other nodes, and its name as a flag."""

    is_of_chain: bool = False
    """True for a setting of the chain itself, the same for each mount that serves it."""
    is_usual: bool = False
    """True for one that help and docs show first."""

    @property
    def read(self) -> Callable[[object], Any]:
        """Parser of a value; it raises ``ValueError``."""
        return self.kind.read


@cache
def all_settings() -> tuple[Setting, ...]:
    """Return all settings, the core's before those of features; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if two have one name, or one a group that is
    not there."""
    found: dict[str, Setting] = {}
    groups = _titles()
    owners: list[type[Any]] = [Settings, *_kinds()]
    for owner in owners:
        for row in fields(owner):
            if "kind" not in row.metadata:
                continue
            if row.name in found:
                raise ConfigurationError(
                    f"the setting {row.name} is declared by {owner.__name__} and by"
                    f" {found[row.name].owner.__name__}: give one of them another name"
                )
            if row.metadata["group"] not in groups:
                raise ConfigurationError(
                    f"the setting {row.name} has the group {row.metadata['group']!r}: name one"
                    f" of {', '.join(groups)}, or its feature, which then needs a title"
                )
            found[row.name] = Setting(
                name=row.name,
                key=PREFIX + row.name.upper(),
                group=row.metadata["group"],
                kind=row.metadata["kind"],
                value_type=str(row.type),
                default=row.default,
                doc=row.metadata["doc"],
                owner=owner,
                flags=(*row.metadata["flags"], "--" + row.name.replace("_", "-")),
                is_of_chain=row.metadata["is_of_chain"],
                is_usual=row.name in NEWCOMER or row.metadata["is_usual"],
            )
    return tuple(found.values())


@cache
def _owners() -> dict[str, type[Any]]:
    return {row.name: row.owner for row in all_settings()}


def flag_of(name: str) -> str:
    """Return the first flag of a setting, by its name."""
    return next(row.flags[0] for row in all_settings() if row.name == name)


def settings_of(group: str) -> list[Setting]:
    """Return the settings of a group without those of ``first``, which are for a newcomer."""
    if group == "first":
        usual = [row for row in all_settings() if row.is_usual]
        return sorted(usual, key=lambda row: (*NEWCOMER, row.name).index(row.name))
    return [row for row in all_settings() if row.group == group and not row.is_usual]


def by_group() -> Iterator[tuple[str, list[Setting]]]:
    """Yield the titles of groups with their settings, those for a newcomer first and those of
    features last."""
    for group, title in _titles().items():
        yield title, settings_of(group)


def _titles() -> dict[str, str]:
    """Return the titles of groups by their names."""
    return {**GROUPS, **{each.name: each.title for each in features() if each.title}}
