"""The table of settings, by group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from ..application_kinds import application_names
from ..lru import DEFAULT_BYTES
from .kinds import (
    ADDRESSES,
    AMOUNT,
    BYTES,
    CHAIN_ID,
    COUNT,
    HEADER,
    NAMES,
    OPTIONAL_PATH,
    ORIGINS,
    PATH,
    PERIOD,
    PROCESSES,
    SECONDS,
    SWITCH,
    TEXT,
    URLS,
    Kind,
    integer,
    one_of,
)

PREFIX = "NODERPC_"

GROUPS = {
    "first": "Usual settings",
    "chain": "The embedded chain",
    "companion": "The companion",
    "rpc": "The node RPC",
    "access": "Access",
    "server": "The server",
    "evm": "The EVM layer",
}
"""Groups of settings by their names, with their titles."""

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
    "json_rpc_enable",
)
"""Settings that help and docs show first."""


def setting(group: str, default: Any, kind: Kind, doc: str, flags: tuple[str, ...] = ()) -> Any:
    """Return a dataclass field with its group, default, kind, sentence for the docs, and the
    flags that other nodes have for it."""
    metadata = {"group": group, "kind": kind, "doc": doc, "flags": flags}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one mount, read once when it is registered."""

    database: str | None = setting(
        "chain",
        None,
        PATH,
        "SQLite file or ``postgresql://`` URL; ``noderpc.db`` in the instance folder.",
    )
    read_database: str | None = setting(
        "chain",
        None,
        PATH,
        "``postgresql://`` URL of a replica of the database, for reads of what it has.",
    )
    home: str | None = setting(
        "chain",
        None,
        PATH,
        "Folder of ``config/`` with genesis and keys; the database's folder.",
    )
    application: str = setting(
        "chain",
        "kvstore",
        one_of(application_names),
        "Application of the embedded chain.",
    )
    chain_id: str | None = setting(
        "chain",
        None,
        CHAIN_ID,
        "Chain id of a new chain, at most 50 bytes; ``test-chain-`` and six letters when not"
        " given.",
    )
    moniker: str = setting("chain", "flask-noderpc", TEXT, "Name of the node in ``status``.")
    produce: bool = setting(
        "chain",
        True,
        SWITCH,
        "True to produce blocks in this process, if no other holds the lease.",
    )
    accept_loss: bool = setting(
        "chain",
        False,
        SWITCH,
        "True to go on from the head of a store that has lost blocks which its development key"
        " signed; other keys never sign a height twice.",
    )
    block_interval: float = setting(
        "chain",
        1.0,
        SECONDS,
        "Seconds between two blocks; with ``NODERPC_DEV`` and at most 0.1, each transaction"
        " gets its block at once.",
    )
    empty_blocks: bool = setting(
        "chain",
        False,
        SWITCH,
        "True to produce blocks without transactions. The default of ``noderpc start``"
        " without ``--dev`` is true.",
        flags=("--consensus.create_empty_blocks",),
    )
    lease_seconds: float = setting(
        "chain",
        3.0,
        SECONDS,
        "Seconds until the lease of a producer that does not renew it expires.",
    )
    retain_blocks: int | None = setting(
        "chain",
        None,
        COUNT,
        "Number of latest blocks to retain, with their results and events; all when not given.",
    )
    max_tx_bytes: int = setting("chain", 1_048_576, BYTES, "Maximum bytes of a transaction.")
    mempool_size: int = setting("chain", 5_000, COUNT, "Maximum transactions in the mempool.")
    dev: bool = setting(
        "chain",
        False,
        SWITCH,
        "True to fund ten accounts with publicly known keys on a new chain of the application"
        " ``evm``, and let callers on this machine sign with them; or of ``bank``.",
    )
    bank_prefix: str = setting(
        "chain",
        "cosmos",
        TEXT,
        "Prefix of the addresses of a new chain of the application ``bank``, unless its genesis"
        " has addresses.",
    )
    bank_coins: str = setting(
        "chain",
        "1000000000000stake,1000000000000token",
        TEXT,
        "Coins that ``NODERPC_DEV`` gives each account of a new chain of ``bank``.",
    )
    bank_heights: int = setting(
        "chain",
        100,
        COUNT,
        "Number of latest heights of ``bank`` that can be queried and rewound to.",
    )
    upstream: tuple[str, ...] = setting(
        "companion",
        (),
        URLS,
        "URLs of nodes of one chain, which is followed and served instead of an embedded one.",
    )
    evm_upstream: tuple[str, ...] = setting(
        "companion",
        (),
        URLS,
        "URLs of the nodes' EVM JSON-RPC, which is asked for what needs a state.",
    )
    upstream_dialect: str = setting(
        "companion",
        "",
        TEXT,
        "Dialect of the nodes; read from their version when not given.",
    )
    upstream_header: str = setting(
        "companion",
        "",
        HEADER,
        "Header of each request to the nodes of NODERPC_UPSTREAM, as"
        " ``Authorization: Bearer …`` or ``x-api-key: …``, or ``@FILE`` with one.",
    )
    upstream_timeout: float = setting(
        "companion",
        10.0,
        SECONDS,
        "Maximum seconds of a request to a node, and of a forwarded call as a whole.",
    )
    upstream_concurrency: int = setting(
        "companion",
        8,
        COUNT,
        "Maximum requests in flight to each node: of the processes of ``noderpc start``"
        " together, of each process of another server.",
    )
    upstream_rate: float = setting(
        "companion",
        0.0,
        AMOUNT,
        "Maximum calls per second to each node, of the same processes; 0 is no limit.",
    )
    upstream_max_bytes: int = setting(
        "companion",
        256 << 20,
        BYTES,
        "Maximum bytes of a response of a node, after decompression.",
    )
    upstream_poll: float = setting(
        "companion",
        0.5,
        SECONDS,
        "Seconds after which a node is asked for its height where its websocket shows none.",
    )
    trust: str = setting(
        "companion",
        "",
        TEXT,
        "``HEIGHT:HASH`` of a header that is trusted; the first that is seen when not given.",
    )
    trust_period: float = setting(
        "companion",
        14 * 86_400.0,
        PERIOD,
        "Time for which a header is trusted, such as ``14d``; less than the chain's unbonding"
        " period.",
    )
    unchecked: tuple[str, ...] = setting(
        "companion",
        (),
        NAMES,
        "Fields of blocks that the chain computes in its own way, such as ``data_hash``.",
    )
    backfill_from: int = setting(
        "companion",
        1,
        COUNT,
        "Lowest height that is fetched; blocks that all nodes have pruned are left out.",
    )
    head_delay: int = setting(
        "companion",
        0,
        integer(0, maximum=1000),
        "Blocks that the head stays behind the nodes'; 1 serves results that are proven.",
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
    gzip_min_bytes: int = setting(
        "rpc",
        16_384,
        integer(0, "BYTES"),
        "Bytes from which a response is compressed with gzip for a client that accepts it and"
        " is not on the node's machine, as a proxy is; 0 for never.",
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
    max_waiting_calls_per_client: int | None = setting(
        "rpc",
        None,
        COUNT,
        "Maximum such waiting calls of one client, and of its calls that execute EVM code"
        " or wait to; no limit per client when not given.",
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
    rest: bool = setting(
        "rpc",
        False,
        SWITCH,
        "True to serve the REST gateway of a chain of the Cosmos SDK, at ``/cosmos/…``. The"
        " default of ``noderpc start --application bank`` is true.",
        flags=("--api.enable",),
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
        " IP addresses, which are served there whatever is listed.",
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
        " ``*`` is any. Those of this site always may, and programs that are no browsers.",
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
    api_address: str = setting(
        "server",
        "tcp://127.0.0.1:1317",
        ADDRESSES,
        "Addresses where ``noderpc start`` serves the REST gateway alone, if ``NODERPC_REST``"
        " brings it.",
        flags=("--api.address",),
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
    client_timeout: float = setting(
        "server",
        10.0,
        SECONDS,
        "Maximum seconds that a client of ``noderpc start`` takes for the headers of a request,"
        " for its body, and for each part of the response.",
    )
    idle_timeout: float = setting(
        "server",
        120.0,
        SECONDS,
        "Maximum seconds that a connection to ``noderpc start`` may be idle.",
    )
    max_open_connections: int = setting(
        "server",
        900,
        COUNT,
        "Maximum connections at an address of a process of ``noderpc start``, without"
        " websockets and those whose call waits for a block.",
    )
    max_connections_per_client: int | None = setting(
        "server",
        None,
        COUNT,
        "Maximum websockets of one client in a process, and its connections at an address of"
        " ``noderpc start``, with websockets and without trusted proxies; when not given 256,"
        " and no limit for clients of this machine.",
    )
    max_websockets: int = setting(
        "server", 900, COUNT, "Maximum open websockets in a process, of both APIs together."
    )
    json_rpc_enable: bool = setting(
        "evm",
        False,
        SWITCH,
        "True to serve the EVM layer, at ``/evm`` and ``/evm/ws``.",
        flags=("--json-rpc.enable",),
    )
    json_rpc_address: str = setting(
        "evm",
        "0.0.0.0:8545",
        ADDRESSES,
        "Addresses where ``noderpc start`` serves the EVM layer alone.",
        flags=("--json-rpc.address",),
    )
    json_rpc_ws_address: str = setting(
        "evm",
        "0.0.0.0:8546",
        ADDRESSES,
        "Addresses where ``noderpc start`` serves the EVM layer's websocket alone.",
        flags=("--json-rpc.ws-address",),
    )
    json_rpc_tls_cert_file: str = setting(
        "evm",
        "",
        OPTIONAL_PATH,
        "Certificate of the EVM layer's own addresses, for TLS.",
        flags=("--tls.certificate-path",),
    )
    json_rpc_tls_key_file: str = setting(
        "evm", "", OPTIONAL_PATH, "Private key of that certificate.", flags=("--tls.key-path",)
    )
    evm_api: tuple[str, ...] = setting(
        "evm",
        ("eth", "net", "web3"),
        NAMES,
        "Namespaces of the EVM layer: of ``eth``, ``web3``, ``net``, ``txpool``, ``debug``,"
        " ``trace``.",
        flags=("--evm.rpc.api", "--json-rpc.api"),
    )
    evm_chain_id: int = setting("evm", 9000, COUNT, "Chain id that the EVM layer signs for.")
    evm_allow_unprotected_txs: bool = setting(
        "evm",
        False,
        SWITCH,
        "True to take transactions without a chain id (before EIP-155), which are valid on"
        " every chain; a development chain takes them in any case.",
        flags=("--rpc.allow-unprotected-txs", "--json-rpc.allow-unprotected-txs"),
    )
    evm_code_size_limit: int = setting(
        "evm",
        24_576,
        integer(1, maximum=1 << 20),
        "Maximum bytes of a contract's code (EIP-170); the code that creates it may have twice"
        " as many (EIP-3860).",
        flags=("--code-size-limit",),
    )
    evm_client_version: str | None = setting(
        "evm",
        None,
        TEXT,
        "Answer to ``web3_clientVersion``, for tools that expect a certain node; this server's"
        " name and version when not given.",
    )
    evm_gas_cap: int = setting(
        "evm", 25_000_000, integer(21_000), "Maximum gas of a call or an estimate."
    )
    evm_timeout: float = setting(
        "evm", 5.0, SECONDS, "Maximum seconds of a call, an estimate or a trace."
    )
    evm_executors: int = setting(
        "evm",
        2,
        COUNT,
        "Number of executors: processes that execute EVM code for a process of the server.",
    )
    evm_txfee_cap: float = setting(
        "evm", 1.0, AMOUNT, "Maximum fee of a transaction in ether; 0 is no limit."
    )
    evm_max_body_bytes: int = setting(
        "evm", 5 * 1024 * 1024, BYTES, "Maximum bytes of a request body of the EVM layer."
    )
    evm_max_batch: int = setting(
        "evm", 1_000, COUNT, "Maximum calls in one batch of the EVM layer."
    )
    evm_block_range_cap: int = setting(
        "evm", 10_000, COUNT, "Maximum range of blocks of a search for logs."
    )
    evm_logs_cap: int = setting("evm", 10_000, COUNT, "Maximum logs that one search returns.")
    evm_filter_cap: int = setting(
        "evm", 200, COUNT, "Maximum installed filters, divided fairly among all clients."
    )
    evm_max_subscriptions: int = setting(
        "evm", 1_000, COUNT, "Maximum subscriptions of the EVM layer in a process."
    )

    @property
    def takes_unprotected_txs(self) -> bool:
        """True to take Ethereum transactions without a chain id."""
        return self.evm_allow_unprotected_txs or self.dev


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of :data:`SETTINGS`."""

    name: str
    key: str
    group: str
    kind: Kind
    type: str
    default: object
    doc: str
    flags: tuple[str, ...] = ()
    """Flags of ``noderpc start``: those of other nodes, and its name as a flag."""

    @property
    def read(self) -> Callable[[object], Any]:
        """Parser of a value; it raises ``ValueError``."""
        return self.kind.read


SETTINGS: tuple[Setting, ...] = tuple(
    Setting(
        name=row.name,
        key=PREFIX + row.name.upper(),
        group=row.metadata["group"],
        kind=row.metadata["kind"],
        type=str(row.type),
        default=row.default,
        doc=row.metadata["doc"],
        flags=(*row.metadata["flags"], "--" + row.name.replace("_", "-")),
    )
    for row in fields(Settings)
)


def settings_of(group: str) -> list[Setting]:
    """Return the settings of a group without those of ``first``, the ten for a newcomer."""
    if group == "first":
        by_name = {row.name: row for row in SETTINGS}
        return [by_name[name] for name in NEWCOMER]
    return [row for row in SETTINGS if row.group == group and row.name not in NEWCOMER]


def by_group() -> Iterator[tuple[str, list[Setting]]]:
    """Yield the titles of groups with their settings, those for a newcomer first."""
    for group, title in GROUPS.items():
        yield title, settings_of(group)
