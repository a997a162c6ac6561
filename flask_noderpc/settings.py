"""Every setting, declared once: key, type, default and what it does.

Each field of :class:`Settings` is one setting. Its key in ``app.config`` is
``NODERPC_`` and the field's name in capitals; with
``app.config.from_prefixed_env()`` the environment variable is ``FLASK_`` and
that key. Nothing else in the package reads ``app.config``.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from .errors import ConfigurationError, short_repr
from .lru import DEFAULT_BYTES

PREFIX = "NODERPC_"
SEE_LIST = "see docs/settings for the list"
"""Hint for a name that resembles no setting."""

_MAX_S = 1_000_000


def _text(value: object) -> str:
    # from_prefixed_env reads values as JSON, so a chain id of digits arrives as int.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise ValueError("a text is needed (quote a value that looks like a JSON number)")
    return value


# CometBFT: types/genesis.go, MaxChainIDLen.
_MAX_CHAIN_ID_BYTES = 50


def check_chain_id(text: str) -> str:
    """Return a chain id; raise ``ValueError`` for one that no genesis document may have."""
    size = len(text.encode())
    if not 0 < size <= _MAX_CHAIN_ID_BYTES or not text.isprintable():
        raise ValueError(f"chain_id has 1 to {_MAX_CHAIN_ID_BYTES} printable bytes, not {size}")
    return text


def _chain_id(value: object) -> str:
    return check_chain_id(_text(value))


def _one_of(*known: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if _text(value) not in known:
            raise ValueError(f"known are {', '.join(known)}")
        return _text(value)

    return read


def _path(value: object) -> str:
    return _text(os.fspath(value) if isinstance(value, os.PathLike) else value)


def _maybe_path(value: object) -> str:
    return "" if value == "" else _path(value)


_WORDS = dict.fromkeys(("true", "yes", "on", "1"), True)
_WORDS |= dict.fromkeys(("false", "no", "off", "0"), False)


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    raise ValueError("true or false is needed")


def _whole(minimum: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, str) and value.isascii() and value.isdecimal():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise ValueError(f"a whole number of at least {minimum} is needed")
        return value

    return read


def _seconds(value: object) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except ValueError:
        number = math.nan
    if isinstance(value, bool) or not 0 < number <= _MAX_S:
        raise ValueError(f"a number of seconds above 0, at most {_MAX_S}, is needed")
    return number


def _amount(value: object) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except ValueError:
        number = math.nan
    if isinstance(value, bool) or not 0 <= number < math.inf:
        raise ValueError("a number of at least 0 is needed")
    return number


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError("a list of names is needed, or names joined by commas")
    return tuple(value)


_ORIGIN = re.compile(r"(\*|null|[a-z][a-z0-9+.-]*://[^/\s]+)", re.IGNORECASE)


def _origins(value: object) -> tuple[str, ...]:
    names = _names(value)
    for name in names:
        # Browsers send scheme, host and port, and a list without them allows nobody.
        if not _ORIGIN.fullmatch(name):
            raise ValueError(
                f"{short_repr(name)} is no origin: https://wallet.example, http://localhost:3000"
            )
    return names


def setting(
    default: Any, read: Callable[[object], Any], doc: str, flags: tuple[str, ...] = ()
) -> Any:
    """Return a dataclass field with its default, parser, sentence for the docs, and the
    flags that other nodes have for it."""
    return field(default=default, metadata={"read": read, "doc": doc, "flags": flags})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one mount, read once when it is registered."""

    database: str | None = setting(
        None, _path, "SQLite file of the embedded chain; ``noderpc.db`` in the instance folder."
    )
    home: str | None = setting(
        None, _path, "Folder of ``config/`` with genesis and keys; the database's folder."
    )
    dialect: str = setting(
        "document",
        _one_of("document", "comet-0.34", "comet-0.37", "comet-0.38", "comet-1.0"),
        "Which node's wire shapes are served: ``document``, ``comet-0.34``, ``comet-0.37``,"
        " ``comet-0.38`` or ``comet-1.0``.",
    )
    application: str = setting(
        "kvstore",
        _one_of("kvstore", "merkle", "evm"),
        "Application of the embedded chain: ``kvstore``, ``merkle`` or ``evm``.",
    )
    chain_id: str | None = setting(
        None,
        _chain_id,
        "Chain id of a new chain, at most 50 bytes; ``test-chain-`` and six letters when not"
        " given.",
    )
    moniker: str = setting("flask-noderpc", _text, "Name that the node gives itself.")
    produce: bool = setting(
        True,
        _switch,
        "True to produce blocks in this process, if no other holds the lease.",
    )
    block_interval: float = setting(
        1.0,
        _seconds,
        "Seconds between two blocks; with ``NODERPC_DEV`` and at most 0.1, each transaction"
        " gets its block at once.",
    )
    empty_blocks: bool = setting(
        False,
        _switch,
        "True to produce blocks without transactions. The default of ``noderpc start``"
        " without ``--dev`` is true.",
        flags=("--consensus.create_empty_blocks",),
    )
    proof_blocks: bool | None = setting(
        None,
        _switch,
        "True to produce, without empty blocks, the first block at once, and one more after"
        " each that changed the application's hash; as the dialect's node when not given.",
    )
    lease_seconds: float = setting(
        3.0, _seconds, "Seconds until the lease of a producer that does not renew it expires."
    )
    retain_blocks: int | None = setting(
        None,
        _whole(1),
        "Number of latest blocks to retain, with their results and events; all when not given.",
    )
    poll_interval: float = setting(
        0.05, _seconds, "Seconds between two polls for what other processes wrote."
    )
    max_body_bytes: int = setting(
        1_000_000,
        _whole(1),
        "Maximum bytes of a request body; the host's ``MAX_CONTENT_LENGTH`` if lower.",
    )
    max_batch: int = setting(10, _whole(1), "Maximum calls in one JSON-RPC batch.")
    batch_timeout: float = setting(
        30.0, _seconds, "Maximum seconds of a batch; later calls in it get an error."
    )
    max_response_bytes: int = setting(
        25_000_000,
        _whole(1),
        "Maximum bytes of a response: of a batch, whose calls beyond it get an error, of a"
        " page of a search, a trace or a simulation.",
    )
    max_tx_bytes: int = setting(1_048_576, _whole(1), "Maximum bytes of a transaction.")
    mempool_size: int = setting(5_000, _whole(1), "Maximum transactions in the mempool.")
    mempool_bytes: int = setting(
        1_073_741_824, _whole(1), "Maximum bytes of the mempool's transactions."
    )
    mempool_cache: int = setting(
        10_000, _whole(1), "Size of the mempool's cache of transactions seen before."
    )
    broadcast_timeout: float = setting(
        10.0, _seconds, "Seconds that ``broadcast_tx_commit`` waits for its block."
    )
    max_waiting_calls: int = setting(
        100,
        _whole(1),
        "Maximum waiting calls of ``broadcast_tx_commit``, ``events`` and"
        " ``eth_sendRawTransactionSync`` in a process, divided fairly among clients.",
    )
    max_waiting_calls_per_client: int | None = setting(
        None,
        _whole(1),
        "Maximum such waiting calls of one client, and of its calls that execute EVM code"
        " or wait to; no limit per client when not given.",
    )
    max_websockets: int = setting(
        900, _whole(1), "Maximum open websockets in a process, of both APIs together."
    )
    max_websockets_per_client: int | None = setting(
        None, _whole(1), "Maximum websockets of one client; no limit per client when not given."
    )
    server_threads: int | None = setting(
        None,
        _whole(1),
        "Threads of a process of your server, if their number is fixed: waiting calls and"
        " websockets leave some of them to requests. Those of gunicorn are detected.",
    )
    max_subscription_clients: int = setting(
        100, _whole(1), "Maximum websocket clients with a subscription in a process."
    )
    max_subscriptions_per_client: int = setting(
        5, _whole(1), "Maximum subscriptions of one websocket client."
    )
    max_query_bytes: int = setting(512, _whole(1), "Maximum bytes of an event query.")
    event_buffer: int = setting(
        200,
        _whole(1),
        "Maximum events queued for a slow subscriber, besides the latest block's.",
    )
    event_buffer_bytes: int = setting(
        8_000_000,
        _whole(1),
        "Maximum bytes of events queued for a slow subscriber; beyond it the subscription"
        " ends with an error.",
    )
    search_timeout: float = setting(
        2.0, _seconds, "Maximum seconds of a search, its wait in the queue included."
    )
    search_max_rows: int = setting(
        1_000_000, _whole(1), "Maximum rows of the index that a search reads, approximately."
    )
    event_log_blocks: int = setting(
        1_000, _whole(1), "Number of latest blocks whose events the method ``events`` returns."
    )
    cache_bytes: int = setting(
        DEFAULT_BYTES,
        _whole(0),
        "Maximum bytes of all caches of a process: responses, Ethereum's blocks and"
        " transactions, the EVM's state; the largest of an app's mounts counts. 0 caches no"
        " responses.",
    )
    genesis_chunk_bytes: int = setting(
        16 * 1024 * 1024, _whole(1), "Bytes of a chunk of ``genesis_chunked``."
    )
    rpc_laddr: str = setting(
        "tcp://127.0.0.1:26657",
        _text,
        "Addresses of the node RPC: where ``noderpc start`` listens, and shown in ``status``.",
        flags=("--rpc.laddr",),
    )
    tls_cert_file: str = setting(
        "", _maybe_path, "Certificate of the node RPC, for TLS.", flags=("--rpc.tls_cert_file",)
    )
    tls_key_file: str = setting(
        "",
        _maybe_path,
        "Private key of the node RPC's certificate.",
        flags=("--rpc.tls_key_file",),
    )
    read_timeout: float = setting(
        10.0,
        _seconds,
        "Maximum seconds to read the headers or the body of a request to ``noderpc start``.",
    )
    write_timeout: float = setting(
        10.0,
        _seconds,
        "Maximum seconds to write each part of a response of ``noderpc start``.",
    )
    idle_timeout: float = setting(
        120.0,
        _seconds,
        "Maximum seconds that a connection to ``noderpc start`` may be idle.",
    )
    max_open_connections: int = setting(
        900,
        _whole(1),
        "Maximum connections at an address of a process of ``noderpc start``, without"
        " websockets and those whose call waits for a block.",
    )
    max_connections_per_client: int | None = setting(
        None,
        _whole(1),
        "Maximum connections of one client at an address of ``noderpc start``, with"
        " websockets; no limit per client when not given, or with trusted proxies.",
    )
    workers: int = setting(
        1,
        _whole(1),
        "Serving processes. With more than one, ``noderpc start`` adds one that produces.",
    )
    allowed_hosts: tuple[str, ...] = setting(
        (),
        _names,
        "Hosts that requests may name, without ports; ``*`` stands for any part of a name. When"
        " not given all, but at loopback addresses of ``noderpc start`` only ``localhost`` and"
        " IP addresses, which are served there whatever is listed.",
    )
    allow_methods: tuple[str, ...] = setting(
        ("*",), _names, "RPC methods that are served; ``*`` stands for any part of a name."
    )
    deny_methods: tuple[str, ...] = setting(
        (), _names, "RPC methods that are not served, of those that are allowed."
    )
    trusted_proxies: int = setting(
        0,
        _whole(0),
        "Number of proxies in front of ``noderpc start`` whose forwarded headers are trusted.",
    )
    read_origins: tuple[str, ...] = setting(
        ("*",),
        _origins,
        "Origins, such as ``https://wallet.example``, whose pages may read and subscribe;"
        " ``*`` is any. Those of this site always may, and programs that are no browsers.",
    )
    write_origins: tuple[str, ...] = setting(
        (), _origins, "Origins of other sites whose pages may also send transactions."
    )
    cors_origins: tuple[str, ...] = setting(
        (),
        _origins,
        "Origins whose pages browsers let read answers (CORS); ``*`` is any, and stands for"
        " any part of a name.",
    )
    cors_methods: tuple[str, ...] = setting(
        ("HEAD", "GET", "POST"),
        _names,
        "HTTP methods that pages of other sites may use.",
    )
    cors_headers: tuple[str, ...] = setting(
        ("Origin", "Accept", "Content-Type", "X-Requested-With", "X-Server-Time"),
        _names,
        "Headers that pages of other sites may send.",
    )
    json_rpc_enable: bool = setting(
        False,
        _switch,
        "True to serve the EVM layer, at ``/evm`` and ``/evm/ws``.",
        flags=("--json-rpc.enable",),
    )
    json_rpc_address: str = setting(
        "0.0.0.0:8545",
        _text,
        "Addresses where ``noderpc start`` serves the EVM layer alone.",
        flags=("--json-rpc.address",),
    )
    json_rpc_ws_address: str = setting(
        "0.0.0.0:8546",
        _text,
        "Addresses where ``noderpc start`` serves the EVM layer's websocket alone.",
        flags=("--json-rpc.ws-address",),
    )
    json_rpc_tls_cert_file: str = setting(
        "",
        _maybe_path,
        "Certificate of the EVM layer's own addresses, for TLS.",
        flags=("--tls.certificate-path",),
    )
    json_rpc_tls_key_file: str = setting(
        "", _maybe_path, "Private key of that certificate.", flags=("--tls.key-path",)
    )
    evm_api: tuple[str, ...] = setting(
        ("eth", "net", "web3"),
        _names,
        "Namespaces of the EVM layer: of ``eth``, ``web3``, ``net``, ``txpool``, ``debug``.",
        flags=("--evm.rpc.api", "--json-rpc.api"),
    )
    evm_chain_id: int = setting(9000, _whole(1), "Chain id that the EVM layer signs for.")
    dev: bool = setting(
        False,
        _switch,
        "True to fund ten accounts with publicly known keys on a new chain of the application"
        " ``evm``, and let callers on this machine sign with them.",
    )
    evm_client_version: str | None = setting(
        None,
        _text,
        "Answer to ``web3_clientVersion``, for tools that expect a certain node; this server's"
        " name and version when not given.",
    )
    evm_gas_cap: int = setting(
        25_000_000, _whole(21_000), "Maximum gas of a call or an estimate."
    )
    evm_timeout: float = setting(
        5.0, _seconds, "Maximum seconds of a call, an estimate or a trace."
    )
    evm_executors: int = setting(
        2,
        _whole(1),
        "Number of executors: processes that execute EVM code for a process of the server.",
    )
    evm_max_waiting_calls: int = setting(
        32, _whole(1), "Maximum calls that wait for an executor in a process of the server."
    )
    evm_txfee_cap: float = setting(
        1.0, _amount, "Maximum fee of a transaction in ether; 0 is no limit."
    )
    evm_max_body_bytes: int = setting(
        5 * 1024 * 1024, _whole(1), "Maximum bytes of a request body of the EVM layer."
    )
    evm_block_range_cap: int = setting(
        10_000, _whole(1), "Maximum range of blocks of a search for logs."
    )
    evm_logs_cap: int = setting(10_000, _whole(1), "Maximum logs that one search returns.")
    evm_filter_cap: int = setting(
        200, _whole(1), "Maximum installed filters, divided fairly among all clients."
    )
    evm_max_batch: int = setting(
        1_000, _whole(1), "Maximum calls in one batch of the EVM layer."
    )
    evm_max_subscriptions: int = setting(
        1_000, _whole(1), "Maximum subscriptions of the EVM layer in a process."
    )
    evm_max_subscriptions_per_client: int = setting(
        100, _whole(1), "Maximum subscriptions of one websocket client of the EVM layer."
    )
    rpc_unsafe: bool = setting(
        False,
        _switch,
        "True to serve ``dial_seeds``, ``dial_peers`` and ``unsafe_flush_mempool``, which"
        " change the node for all its callers.",
    )
    log_calls: bool = setting(
        False,
        _switch,
        "True to log each call to the logger ``flask_noderpc.calls`` at INFO: method, code,"
        " milliseconds, transport and address, never parameters.",
    )
    metrics: bool = setting(
        False,
        _switch,
        "True to serve metrics for Prometheus at ``GET /metrics``, to every client.",
    )
    index: bool = setting(True, _switch, "True to show the list of endpoints at ``GET /``.")
    exclude_routes: tuple[str, ...] = setting(
        (),
        _names,
        "Routes whose GET path is left to the host; ``evm``, ``readyz``, ``openapi`` and"
        " ``metrics`` may be among them. JSON-RPC still answers them.",
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of :data:`SETTINGS`."""

    name: str
    key: str
    type: str
    default: object
    doc: str
    read: Callable[[object], Any]
    flags: tuple[str, ...] = ()
    """Flags of ``noderpc start``: those of other nodes, and its name as a flag."""


SETTINGS: tuple[Setting, ...] = tuple(
    Setting(
        name=row.name,
        key=PREFIX + row.name.upper(),
        type=str(row.type),
        default=row.default,
        doc=row.metadata["doc"],
        read=row.metadata["read"],
        flags=(*row.metadata["flags"], "--" + row.name.replace("_", "-")),
    )
    for row in fields(Settings)
)


def similar_setting(name: str) -> str | None:
    """Return the name of the setting closest to a mistyped one."""
    like = get_close_matches(name.lower(), [row.name for row in SETTINGS], 1)
    return like[0] if like else None


def no_setting(key: str) -> str:
    """Return the error text for an unknown key, with the closest setting."""
    # Without the prefix, which would make any two names similar.
    like = similar_setting(key.removeprefix(PREFIX))
    hint = f"did you mean {PREFIX}{like.upper()}?" if like else SEE_LIST
    return f"{key} is no setting; {hint}"


def read_settings(
    config: Mapping[str, object],
    overrides: Mapping[str, object],
    written: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings of a mount: its overrides, then ``app.config``, then defaults.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` naming the key for a value of
    the wrong kind, an unknown ``NODERPC_`` key, or an unknown override. ``written`` maps
    names of settings to what an error names instead: a flag, or a file and a name in it.
    """
    known = {row.key for row in SETTINGS}
    given_keys = [key for key in config if key.startswith(PREFIX)]
    for key in (*given_keys, *(PREFIX + name.upper() for name in overrides)):
        if key not in known:
            raise ConfigurationError(no_setting(key))
    values: dict[str, Any] = {}
    for row in SETTINGS:
        given = overrides.get(row.name)
        if given is None:
            given = config.get(row.key)
        if given is None:
            continue
        try:
            values[row.name] = row.read(given)
        except ValueError as error:
            place = (written or {}).get(row.name, row.key)
            raise ConfigurationError(f"{place} = {short_repr(given)}: {error}") from None
    return Settings(**values)
