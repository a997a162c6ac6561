"""Settings of Ethereum."""

from __future__ import annotations

from dataclasses import dataclass

from ..settings.kinds import (
    ADDRESSES,
    AMOUNT,
    BYTES,
    COUNT,
    NAMES,
    OPTIONAL_PATH,
    SECONDS,
    SWITCH,
    TEXT,
    URLS,
    Kind,
    integer,
    one_of,
)
from ..settings.table import Settings, setting
from .domain.forks import FORKS, OSAKA, Activation, Schedule, fork_named


def _schedule(value: object) -> Schedule:
    """Parse forks with heights; raise ``ValueError``."""
    if isinstance(value, str):
        value = [each.strip() for each in value.split(",") if each.strip()]
    if not isinstance(value, list | tuple):
        raise ValueError("expected NAME:HEIGHT, or several separated by commas")
    found = tuple(_activation(each) for each in value)
    order, heights = list(FORKS.values()), [each.height for each in found]
    places = [order.index(each.fork) for each in found]
    if heights != sorted(set(heights)) or places != sorted(set(places)):
        raise ValueError(
            "expected forks from the oldest to the newest, each once and at a greater height"
            " than the one before"
        )
    return found


def _activation(value: object) -> Activation:
    if isinstance(value, Activation):
        value = f"{value.fork.name}:{value.height}"
    name, _, height = str(value).partition(":")
    height = height.strip()
    is_number = height.isascii() and height.isdecimal() and len(height) < 19
    if not (is_number and int(height)):
        raise ValueError(
            "expected NAME:HEIGHT with a height above 0 and below 10 to the power of 18, got"
            f" {str(value)[:60]!r}"
        )
    return Activation(int(height), fork_named(name.strip().lower()))


CHAIN_ID, DEV_CHAIN_ID = 9000, 31_337
"""Default Ethereum chain ID, and that of development chains, which is anvil's."""

_FORK = one_of(lambda: FORKS)


def _fork(value: object) -> str:
    """Return the name of a fork in lower case."""
    name: str = _FORK.read(value.lower() if isinstance(value, str) else value)
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class EthereumSettings:
    """Settings of Ethereum's JSON-RPC, and of a chain that runs its transactions."""

    json_rpc_enable: bool = setting(
        "ethereum",
        False,
        SWITCH,
        "True to serve the EVM layer, at ``/evm`` and ``/evm/ws``.",
        flags=("--json-rpc.enable",),
        is_usual=True,
    )
    json_rpc_address: str = setting(
        "ethereum",
        "0.0.0.0:8545",
        ADDRESSES,
        "Addresses at which ``noderpc start`` serves only the EVM layer.",
        flags=("--json-rpc.address",),
    )
    json_rpc_ws_address: str = setting(
        "ethereum",
        "0.0.0.0:8546",
        ADDRESSES,
        "Addresses at which ``noderpc start`` serves only the EVM layer's websocket.",
        flags=("--json-rpc.ws-address",),
    )
    json_rpc_tls_cert_file: str = setting(
        "ethereum",
        "",
        OPTIONAL_PATH,
        "TLS certificate for ``NODERPC_JSON_RPC_ADDRESS`` and ``NODERPC_JSON_RPC_WS_ADDRESS``.",
        flags=("--tls.certificate-path",),
    )
    json_rpc_tls_key_file: str = setting(
        "ethereum",
        "",
        OPTIONAL_PATH,
        "Private key of ``NODERPC_JSON_RPC_TLS_CERT_FILE``.",
        flags=("--tls.key-path",),
    )
    evm_api: tuple[str, ...] = setting(
        "ethereum",
        ("eth", "net", "web3"),
        NAMES,
        "Enabled namespaces of the EVM layer, from ``eth``, ``web3``, ``net``, ``txpool``,"
        " ``debug``, ``trace``, ``erigon``, ``ots`` and ``noderpc``.",
        flags=("--evm.rpc.api", "--json-rpc.api"),
    )
    evm_chain_id: int | None = setting(
        "ethereum",
        None,
        COUNT,
        "Ethereum chain ID with which a new chain begins, and which transactions sign: by"
        " default 9000, or 31337 with ``NODERPC_DEV``. A chain that has blocks goes on with its"
        " own; another one is refused.",
        is_of_chain=True,
    )
    evm_allow_unprotected_txs: bool = setting(
        "ethereum",
        False,
        SWITCH,
        "True to accept transactions without a chain ID (before EIP-155), which are valid on"
        " every chain; a development chain always accepts them.",
        flags=("--rpc.allow-unprotected-txs", "--json-rpc.allow-unprotected-txs"),
        is_of_chain=True,
    )
    evm_code_size_limit: int = setting(
        "ethereum",
        24_576,
        integer(1, maximum=1 << 20),
        "Maximum bytes of a contract's code (EIP-170); the code that creates it may have twice"
        " as many (EIP-3860).",
        flags=("--code-size-limit",),
        is_of_chain=True,
    )
    evm_client_version: str | None = setting(
        "ethereum",
        None,
        TEXT,
        "Result of ``web3_clientVersion``, for tools that expect a certain node; by default"
        " this server's name and version, on a development chain as"
        " ``anvil/compatible (flask-noderpc/...)``.",
    )
    evm_gas_cap: int = setting(
        "ethereum", 25_000_000, integer(21_000), "Maximum gas of a call or an estimate."
    )
    fork_url: tuple[str, ...] = setting(
        "ethereum",
        (),
        URLS,
        "URLs of nodes' Ethereum JSON-RPC from whose chain a new development chain is forked:"
        " it begins with their state, which is read when it is first needed.",
        is_of_chain=True,
    )
    fork_block_number: int | None = setting(
        "ethereum",
        None,
        integer(0),
        "Height of the block after which the chain is forked; by default the latest when the"
        " chain begins.",
        is_of_chain=True,
    )
    fork_cache: str = setting(
        "ethereum",
        "",
        OPTIONAL_PATH,
        "File with the values that were read from the forked chain, which several chains can"
        " use; by default ``fork.jsonl`` beside the database.",
        is_of_chain=True,
    )
    evm_hardfork: str = setting(
        "ethereum",
        OSAKA.name,
        Kind(_FORK.form, _fork, known=_FORK.known),
        "Fork of Ethereum whose rules a new chain begins with; a chain that has blocks goes on"
        " with its own.",
        flags=("--hardfork",),
        is_of_chain=True,
    )
    evm_forks: Schedule = setting(
        "ethereum",
        (),
        Kind("NAME:HEIGHT", _schedule),
        "Forks of Ethereum that a chain begins at later heights, such as ``bpo1:120000``.",
        is_of_chain=True,
    )
    evm_enable_tx_gas_limit: bool = setting(
        "ethereum",
        False,
        SWITCH,
        "True to refuse transactions of more than 16,777,216 gas on a development chain, too,"
        " from Osaka on (EIP-7825).",
        flags=("--enable-tx-gas-limit",),
        is_of_chain=True,
    )
    evm_record_calls: bool = setting(
        "ethereum",
        False,
        SWITCH,
        "True to record the internal calls of each transaction in its events, so that"
        " ``noderpc_getTransactionsByAddress`` and Otterscan's methods find them; a development"
        " chain always does.",
        is_of_chain=True,
    )
    evm_timeout: float = setting(
        "ethereum",
        5.0,
        SECONDS,
        "Maximum seconds that a call, an estimate or a trace may take.",
        is_of_chain=True,
    )
    evm_executors: int = setting(
        "ethereum",
        2,
        COUNT,
        "Number of executors, the processes that execute EVM code, per server process.",
        is_of_chain=True,
    )
    evm_txfee_cap: float = setting(
        "ethereum", 1.0, AMOUNT, "Maximum fee of a sent transaction in ether; 0 means no limit."
    )
    evm_max_body_bytes: int = setting(
        "ethereum", 5 * 1024 * 1024, BYTES, "Maximum bytes of a request body for the EVM layer."
    )
    evm_max_batch: int = setting(
        "ethereum", 1_000, COUNT, "Maximum calls in one batch of the EVM layer."
    )
    evm_block_range_cap: int = setting(
        "ethereum", 10_000, COUNT, "Maximum number of blocks that a search for logs covers."
    )
    evm_logs_cap: int = setting(
        "ethereum", 10_000, COUNT, "Maximum logs that one search returns."
    )
    evm_filter_cap: int = setting(
        "ethereum", 200, COUNT, "Maximum installed filters, divided fairly among all clients."
    )
    evm_max_subscriptions: int = setting(
        "ethereum",
        1_000,
        COUNT,
        "Maximum websocket subscriptions of the EVM layer per server process.",
    )


def takes_unprotected_txs(settings: Settings) -> bool:
    """Return true if Ethereum transactions without a chain ID are accepted."""
    return settings.of(EthereumSettings).evm_allow_unprotected_txs or settings.dev


def caps_tx_gas(settings: Settings) -> bool:
    """Return true if a transaction's gas limit has the fork's maximum (EIP-7825)."""
    return settings.of(EthereumSettings).evm_enable_tx_gas_limit or not settings.dev


def records_calls(settings: Settings) -> bool:
    """Return true if the internal calls of transactions are recorded."""
    return settings.of(EthereumSettings).evm_record_calls or settings.dev
