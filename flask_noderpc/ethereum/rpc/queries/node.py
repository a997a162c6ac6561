"""Handlers for client and network information (web3, net, rpc, parts of eth) and txpool."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ....protocol.comet.key_types import address
from ....protocol.secp256k1eth import keccak, to_checksum
from ...api import DEV_NAMESPACES
from ...domain.records import RPCTransaction, Transaction
from ...protocol import accounts
from ...protocol.blocks import pending_transaction
from ...settings import EthereumSettings
from ...state import EVM_STATE
from ..codec.params import Address, Data, Tag
from ..errors import EvmError
from ..reader import chain_id_of, reader


def client_version(ctx: Context, params: NoParams) -> str:
    """NODERPC_EVM_CLIENT_VERSION, or if it is not set this server's name and version, on a
    development chain after anvil's name."""
    configured = ctx.settings.of(EthereumSettings).evm_client_version
    if configured is not None:
        return configured
    system = f"{platform.system().lower()}-{platform.machine()}"
    name = (
        f"flask-noderpc/v{version('flask-noderpc')}/{system}/python{platform.python_version()}"
    )
    # hardhat-network-helpers and ape-foundry only work with a node whose text begins with the
    # name of a development node that they know.
    return f"anvil/compatible ({name})" if ctx.settings.dev else name


@dataclass(frozen=True, slots=True)
class Bytes(Params):
    """Parameters of ``web3_sha3``."""

    data: bytes = param(Data(), doc="The bytes to hash.")


def sha3(ctx: Context, params: Bytes) -> bytes:
    """The Keccak-256 hash of bytes."""
    return keccak(params.data)


def net_version(ctx: Context, params: NoParams) -> str:
    """The chain ID, as a decimal string."""
    return str(chain_id_of(ctx))


def listening(ctx: Context, params: NoParams) -> bool:
    """True if the node accepts connections from peers."""
    return ctx.backend.network.net_info().listening


def peer_count(ctx: Context, params: NoParams) -> int:
    """Number of the node's peers."""
    return len(ctx.backend.network.net_info().peers)


def modules(ctx: Context, params: NoParams) -> dict[str, str]:
    """Versions of the enabled namespaces, by name."""
    served = {
        *ctx.settings.of(EthereumSettings).evm_api,
        "rpc",
        *(DEV_NAMESPACES if ctx.settings.dev else ()),
    }
    return dict.fromkeys(sorted(served), "1.0")


def chain_id(ctx: Context, params: NoParams) -> int:
    """The chain ID that transactions are signed for."""
    return chain_id_of(ctx)


def block_number(ctx: Context, params: NoParams) -> int:
    """The height of the latest block."""
    return reader(ctx).latest


def syncing(ctx: Context, params: NoParams) -> bool | dict[str, int]:
    """False if the node is synced, else its lowest, current and highest block."""
    backend = ctx.backend
    if not backend.network.catching_up():
        return False
    latest = backend.reads.latest_height()
    return {
        "startingBlock": backend.reads.base_height(),
        "currentBlock": latest,
        "highestBlock": latest,
    }


def coinbase(ctx: Context, params: NoParams) -> bytes:
    """Address of the node's validator key."""
    return address(ctx.backend.network.validator_key())


def capabilities(ctx: Context, params: NoParams) -> dict[str, Any]:
    """The kinds of data that the node has, with the oldest block of each, and its latest
    block."""
    chain = reader(ctx)
    head = chain.block(Tag.LATEST)
    if head is None:
        raise EvmError("header not found")
    header = head.partial_header
    stored = {"disabled": False, "oldestBlock": chain.height(Tag.EARLIEST)}
    state = stored if EVM_STATE.find(ctx.backend) else {"disabled": True}
    return {
        "head": {"number": header.number, "hash": header.hash},
        **dict.fromkeys(("blocks", "tx", "receipts", "logs"), stored),
        **dict.fromkeys(("state", "stateproofs"), state),
    }


def is_mining(ctx: Context, params: NoParams) -> bool:
    """True on a development chain, as some clients check this before they wait for blocks;
    else false, as there is no proof of work."""
    return ctx.settings.dev


def no_hashrate(ctx: Context, params: NoParams) -> int:
    """Always 0: proof of work is not used."""
    return 0


def protocol_version(ctx: Context, params: NoParams) -> int:
    """Version of the Ethereum wire protocol: always 65, as in Ethermint."""
    return 65


Pool = dict[str, Any]


def status(ctx: Context, params: NoParams) -> Pool:
    """Number of pending transactions, and of transactions queued behind a nonce gap."""
    pending, queued = _split_by_nonce_gap(ctx)
    return {"pending": _count(pending), "queued": _count(queued)}


def content(ctx: Context, params: NoParams) -> Pool:
    """All pending transactions, by sender and nonce."""
    return _pool_content(ctx, lambda placed: placed)


def inspect(ctx: Context, params: NoParams) -> Pool:
    """All pending transactions by sender and nonce, each as a line of text."""
    return _pool_content(ctx, lambda placed: _line(placed.transaction))


@dataclass(frozen=True, slots=True)
class SenderParams(Params):
    """Parameters of ``txpool_contentFrom``."""

    sender: bytes = param(Address(), doc="Address of the sender.")


def content_from(ctx: Context, params: SenderParams) -> Pool:
    """Pending transactions of one sender, by nonce."""
    pending, queued = _split_by_nonce_gap(ctx)
    return {
        "pending": _by_nonce(pending.get(params.sender, ()), lambda placed: placed),
        "queued": _by_nonce(queued.get(params.sender, ()), lambda placed: placed),
    }


_Senders = dict[bytes, list[RPCTransaction]]


def _split_by_nonce_gap(ctx: Context) -> tuple[_Senders, _Senders]:
    """Return the transactions that can be executed next, and the transactions behind a nonce
    gap: both as lists by sender, in the order of nonces."""
    next_nonce = _nonces(ctx)
    by_sender: _Senders = defaultdict(list)
    for tx in reader(ctx).pending_transactions():
        by_sender[tx.sender].append(pending_transaction(tx))
    pending: _Senders = {}
    queued: _Senders = {}
    for sender, found in by_sender.items():
        found.sort(key=lambda placed: placed.transaction.nonce)
        first = next_nonce(sender, found[0].transaction.nonce)
        gap = next(
            (i for i, placed in enumerate(found) if placed.transaction.nonce != first + i),
            len(found),
        )
        if found[:gap]:
            pending[sender] = found[:gap]
        if found[gap:]:
            queued[sender] = found[gap:]
    return pending, queued


def _nonces(ctx: Context) -> Callable[[bytes, int], int]:
    """Return a function that returns a sender's next nonce; without an EVM state, this is the
    sender's lowest pending nonce."""
    evm = EVM_STATE.find(ctx.backend)
    if evm is None:
        return lambda sender, first: first
    root = evm.root(reader(ctx).latest)
    return lambda sender, first: accounts.account(evm.record, root, sender).nonce


def _count(senders: _Senders) -> int:
    return sum(map(len, senders.values()))


def _pool_content(ctx: Context, show: Callable[[RPCTransaction], Any]) -> Pool:
    pending, queued = _split_by_nonce_gap(ctx)
    return {
        name: {to_checksum(sender): _by_nonce(found, show) for sender, found in senders.items()}
        for name, senders in (("pending", pending), ("queued", queued))
    }


def _by_nonce(
    found: tuple[RPCTransaction, ...] | list[RPCTransaction],
    show: Callable[[RPCTransaction], Any],
) -> Pool:
    return {str(placed.transaction.nonce): show(placed) for placed in found}


def _line(tx: Transaction) -> str:
    # geth: internal/ethapi, with a multiplication sign.
    cost = f"{tx.value} wei + {tx.gas} gas \u00d7 {tx.fee_cap} wei"
    return f"contract creation: {cost}" if tx.to is None else f"{to_checksum(tx.to)}: {cost}"
