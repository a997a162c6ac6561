"""The declarations of all settings, by group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, Literal, TypeVar

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
"""Titles of the groups of settings, by name; each feature adds its own group."""

USUAL_SETTINGS = (
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
"""Settings that help and docs show first, followed by usual settings of features."""


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
    """Return the dataclass field of a setting.

    ``doc`` is its help text, and ``flags`` are flags that other nodes have for the same
    setting. A setting with ``is_of_chain`` has the same value for all mounts of a chain. Help
    and docs show settings with ``is_usual`` first.
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
                f"settings of the feature {name!r}: expected a dataclass whose fields are made"
                f" by flask_noderpc.settings.setting, got {short_repr(kind)}"
            )
    return list(found.values())


def _defaults() -> dict[type[Any], Any]:
    return {kind: kind() for kind in _kinds()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one mount, read once when it is registered."""

    database: str | None = setting(
        "chain",
        None,
        PATH,
        "SQLite file or ``postgresql://`` URL; by default ``noderpc.db`` in the instance"
        " folder.",
    )
    home: str | None = setting(
        "chain",
        None,
        PATH,
        "Folder with ``config/``, which has the genesis and keys; by default the database's"
        " folder.",
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
        "Chain ID of a new chain, at most 50 bytes; by default ``test-chain-`` and six random"
        " letters.",
        is_of_chain=True,
    )
    moniker: str = setting(
        "chain", "flask-noderpc", TEXT, "Name of the node in ``status``.", is_of_chain=True
    )
    produce: bool = setting(
        "chain",
        True,
        SWITCH,
        "True to produce blocks in this process, unless another process holds the lease.",
        is_of_chain=True,
    )
    accept_loss: bool = setting(
        "chain",
        False,
        SWITCH,
        "True to continue after the store has lost blocks that its development key has signed;"
        " other keys never sign a height twice.",
        is_of_chain=True,
    )
    block_interval: float = setting(
        "chain",
        1.0,
        SECONDS,
        "Seconds between two blocks; with ``NODERPC_DEV`` and at most 0.1 seconds, each"
        " transaction gets a block immediately.",
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
        "Number of latest blocks to retain, with their results and events; by default all.",
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
        " ``evm`` or ``bank``; with ``evm``, callers on this machine can sign with these keys.",
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
        "Node version whose encodings are served: ``document``, ``comet-0.34``,"
        " ``comet-0.37``, ``comet-0.38``, ``comet-0.39``, ``comet-0.40`` or ``comet-1.0``. The"
        " genesis document is parsed by the same rules.",
    )
    max_body_bytes: int = setting(
        "rpc",
        1_000_000,
        BYTES,
        "Maximum bytes of a request body; the app's ``MAX_CONTENT_LENGTH`` applies if lower.",
    )
    max_batch: int = setting("rpc", 10, COUNT, "Maximum calls in one JSON-RPC batch.")
    max_response_bytes: int = setting(
        "rpc",
        25_000_000,
        BYTES,
        "Maximum bytes of the response to a batch, of a page of search results, of a trace and"
        " of a simulation; calls beyond the limit get an error.",
    )
    broadcast_timeout: float = setting(
        "rpc",
        10.0,
        SECONDS,
        "Seconds that ``broadcast_tx_commit`` waits for the transaction's block.",
    )
    max_waiting_calls: int = setting(
        "rpc",
        100,
        COUNT,
        "Maximum waiting calls of ``broadcast_tx_commit``, ``events`` and"
        " ``eth_sendRawTransactionSync`` in a process, shared fairly among clients.",
    )
    max_subscription_clients: int = setting(
        "rpc", 100, COUNT, "Maximum websocket clients with subscriptions in a process."
    )
    max_subscriptions_per_client: int = setting(
        "rpc", 5, COUNT, "Maximum subscriptions of one websocket client."
    )
    event_buffer: int = setting(
        "rpc",
        200,
        COUNT,
        "Maximum events queued for a slow subscriber, in addition to the events of the latest"
        " block.",
    )
    search_timeout: float = setting(
        "rpc",
        2.0,
        SECONDS,
        "Maximum seconds of a search, including its wait in the queue; the maximum number of"
        " rows that it may read is proportional to this.",
    )
    cache_bytes: int = setting(
        "rpc",
        DEFAULT_BYTES,
        integer(0, "BYTES"),
        "Maximum bytes of all caches: responses, Ethereum blocks and transactions, EVM state."
        " The processes of ``noderpc start`` have equal shares of them; under another server"
        " each process has as many. If an app has several mounts, the largest value applies. 0"
        " disables the cache of responses.",
    )
    exclude_routes: tuple[str, ...] = setting(
        "rpc",
        (),
        NAMES,
        "Routes whose GET path is left to the app; the list may also have ``index`` (the"
        " page at ``GET /``), ``evm``, ``readyz``, ``openapi``, ``try`` and ``metrics``."
        " JSON-RPC still serves the methods.",
    )
    metrics: bool = setting(
        "rpc",
        False,
        SWITCH,
        "True to serve Prometheus metrics at ``GET /metrics``, to every client.",
    )
    log_calls: bool = setting(
        "rpc",
        False,
        SWITCH,
        "True to log each call to the logger ``flask_noderpc.calls`` at INFO: method, code,"
        " milliseconds, transport and address, but never parameters.",
    )
    allowed_hosts: tuple[str, ...] = setting(
        "access",
        (),
        NAMES,
        "Host names, without ports, that the ``Host`` header of a request may have; ``*``"
        " matches any part of a name. By default all are allowed, except that loopback"
        " addresses of ``noderpc start`` only allow ``localhost`` and IP addresses, which are"
        " always allowed there.",
    )
    allow_methods: tuple[str, ...] = setting(
        "access",
        ("*",),
        NAMES,
        "RPC methods that are served; ``*`` matches any part of a name.",
    )
    deny_methods: tuple[str, ...] = setting(
        "access",
        (),
        NAMES,
        "RPC methods that are not served even if ``NODERPC_ALLOW_METHODS`` includes them.",
    )
    rpc_unsafe: bool = setting(
        "access",
        False,
        SWITCH,
        "True to serve ``dial_seeds``, ``dial_peers`` and ``unsafe_flush_mempool``, which"
        " change the node for all clients.",
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
        " ``*`` allows any origin. Pages of the node's own site and programs other than"
        " browsers are always allowed.",
    )
    write_origins: tuple[str, ...] = setting(
        "access", (), ORIGINS, "Origins of other sites whose pages may also send transactions."
    )
    cors_origins: tuple[str, ...] = setting(
        "access",
        (),
        ORIGINS,
        "Origins whose pages may read responses in browsers (CORS); ``*`` allows any origin,"
        " and one ``*`` within an origin matches any part of it.",
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
        "Request headers that pages of other sites may send (CORS).",
    )
    rpc_laddr: str = setting(
        "server",
        "tcp://127.0.0.1:26657",
        ADDRESSES,
        "Addresses of the node RPC: ``noderpc start`` listens on them, and ``status`` shows"
        " them.",
        flags=("--rpc.laddr",),
        is_of_chain=True,
    )
    tls_cert_file: str = setting(
        "server",
        "",
        OPTIONAL_PATH,
        "TLS certificate file of the node RPC.",
        flags=("--rpc.tls_cert_file",),
    )
    tls_key_file: str = setting(
        "server",
        "",
        OPTIONAL_PATH,
        "Private key file of the node RPC's TLS certificate.",
        flags=("--rpc.tls_key_file",),
    )
    workers: int | Literal["auto"] = setting(
        "server",
        "auto",
        PROCESSES,
        "Number of serving processes of ``noderpc start``. ``auto`` is one for each core that"
        " the node may use, at most 8, but 1 with ``NODERPC_DEV`` and for your own app. With"
        " more than one, another process produces blocks.",
    )
    server_threads: int | None = setting(
        "server",
        None,
        COUNT,
        "Number of threads per process of your server, if it is fixed, so that waiting calls"
        " and websockets leave some threads free for other requests; detected under gunicorn.",
    )
    max_open_connections: int = setting(
        "server",
        900,
        COUNT,
        "Maximum connections per address and process of ``noderpc start``, not counting"
        " websockets and connections whose call waits for a block; also the maximum websockets"
        " per process of any server, for all APIs together.",
    )
    max_connections_per_client: int | None = setting(
        "server",
        None,
        COUNT,
        "Maximum websockets of one client per process; without trusted proxies also its"
        " maximum connections per address of ``noderpc start``, including websockets. By"
        " default 256, and unlimited for clients on this machine.",
    )
    of_features: Mapping[type[Any], Any] = field(default_factory=_defaults)
    """Settings objects of features, by the class that declares them."""

    def of(self, kind: type[T]) -> T:
        """Return the settings object of a feature, by the class that declares it."""
        found: T = self.of_features[kind]
        return found

    def value(self, name: str) -> Any:
        """Return the value of any setting by name."""
        owner = _owners()[name]
        return getattr(self if owner is Settings else self.of_features[owner], name)

    def replica(self) -> str | None:
        """Return the URL of the database's replica; ``None`` if no feature's setting has
        one."""
        return next(filter(None, map(self.value, replica_settings())), None)

    def apis(self) -> Iterator[Api]:
        """Yield the APIs of features whose setting is on."""
        return (api for api in apis() if self.value(api.setting))

    def changed(self, **values: Any) -> Settings:
        """Return a copy of the settings with some values changed, by name."""
        given: dict[type[Any], dict[str, Any]] = {}
        for name, value in values.items():
            given.setdefault(_owners()[name], {})[name] = value
        own = given.pop(Settings, {})
        features = {kind: replace(self.of_features[kind], **its) for kind, its in given.items()}
        return replace(self, **own, of_features={**self.of_features, **features})


@dataclass(frozen=True, slots=True)
class Setting:
    """Declaration of one setting."""

    name: str
    key: str
    group: str
    kind: Kind
    value_type: str
    default: object
    doc: str
    owner: type[Any]
    """Class that declares the setting."""
    flags: tuple[str, ...] = ()
    """Flags of ``noderpc start``: flags that other nodes have, then the setting's own name."""

    is_of_chain: bool = False
    """True for a setting of the chain, which has the same value for all mounts of the
    chain."""
    is_usual: bool = False
    """True if help and docs show the setting first."""

    @property
    def read(self) -> Callable[[object], Any]:
        """Parser of values, which raises ``ValueError`` for an invalid one."""
        return self.kind.read


@cache
def all_settings() -> tuple[Setting, ...]:
    """Return all settings, of the core and then of features; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if two have the same name, or if the group
    of one does not exist."""
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
                    f" {found[row.name].owner.__name__}; rename one of them"
                )
            if row.metadata["group"] not in groups:
                raise ConfigurationError(
                    f"the setting {row.name}: expected one of the groups {', '.join(groups)},"
                    f" got {row.metadata['group']!r}; a feature's own group needs a title"
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
                is_usual=row.name in USUAL_SETTINGS or row.metadata["is_usual"],
            )
    return tuple(found.values())


@cache
def _owners() -> dict[str, type[Any]]:
    return {row.name: row.owner for row in all_settings()}


def flag_of(name: str) -> str:
    """Return the first flag of a setting, by the setting's name."""
    return next(row.flags[0] for row in all_settings() if row.name == name)


def settings_of(group: str) -> list[Setting]:
    """Return the settings of a group, without the usual ones, which are in the group
    ``first``."""
    if group == "first":
        usual = [row for row in all_settings() if row.is_usual]
        return sorted(usual, key=lambda row: (*USUAL_SETTINGS, row.name).index(row.name))
    return [row for row in all_settings() if row.group == group and not row.is_usual]


def by_group() -> Iterator[tuple[str, list[Setting]]]:
    """Yield title and settings of each group: usual settings first, groups of features
    last."""
    for group, title in _titles().items():
        yield title, settings_of(group)


def _titles() -> dict[str, str]:
    """Return the titles of all groups, by name."""
    return {**GROUPS, **{each.name: each.title for each in features() if each.title}}
