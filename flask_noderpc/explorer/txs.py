"""Explorer page of a transaction: result, events, bytes and Ethereum transactions in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from flask import g, render_template
from werkzeug.wrappers import Response

from ..domain.responses import ResultTx
from ..errors import ForwardedCallFailed, NodeRPCError, NotFound, TxNotFound, ValueNotAllowed
from ..feature import features, load
from ..protocol.comet.hashes import tx_hash
from ..web.views import read_form
from .node import Node

if TYPE_CHECKING:
    from .abi import Abi, DecodedAbi

MAX_ABI_BYTES = 512 * 1024
_MAX_ETHEREUM = 10
"""Maximum number of Ethereum transactions to show of one node transaction."""
_SCANNED_PENDING = 100


@dataclass(frozen=True, slots=True)
class Log:
    """A log of Ethereum's JSON-RPC; ``decoded`` is ``None`` if the ABI does not have its
    event."""

    json: dict[str, Any]
    decoded: DecodedAbi | None


@dataclass(frozen=True, slots=True)
class EthereumTx:
    """A transaction of Ethereum's JSON-RPC, its receipt if it is in a block, its logs, and its
    decoded calldata."""

    json: dict[str, Any]
    receipt: dict[str, Any] | None
    logs: list[Log]
    call: DecodedAbi | None


def tx(digest: str) -> str | Response:
    """Page of a transaction, by its hash or its Ethereum hash."""
    return _page(digest, None, "")


def tx_with_abi(digest: str) -> str | Response:
    """Page of a transaction with logs and calldata decoded by the ABI in a form."""
    given = read_form(MAX_ABI_BYTES).get("abi", "")
    if not g.node.has_evm:
        return _page(digest, None, given)
    # Import the module only with the EVM layer, as both need the extra ``evm``.
    from .abi import Abi

    try:
        return _page(digest, Abi.parse(given), given)
    except ValueError as error:
        raise ValueNotAllowed(f"the ABI can't be read: {error}") from None


def _page(digest: str, abi: Abi | None, given: str) -> str:
    node: Node = g.node
    wanted = _hash(digest)
    try:
        found = node.call("tx", hash=wanted)
    except TxNotFound:
        found = _by_ethereum_hash(node, wanted)
        if found is None:
            return _pending_page(node, wanted)
    return render_template(
        "noderpc_explorer/tx.html",
        found=found,
        facts=node.tx_facts(found.hash),
        time=node.time_of(found.height),
        ethereum=_ethereum(node, found.tx, abi),
        abi=given,
        has_abi=abi is not None,
    )


def _pending_page(node: Node, wanted: bytes) -> str:
    """Return the page of a pending transaction; raise ``TxNotFound`` if it is not pending."""
    with suppress(NodeRPCError):
        for waiting in node.call("unconfirmed_txs", limit=_SCANNED_PENDING).txs:
            if wanted in (tx_hash(waiting), *_hashes(node, waiting)):
                return render_template(
                    "noderpc_explorer/pending.html", hash=tx_hash(waiting), tx=waiting
                )
    raise TxNotFound(wanted, "its block may not be stored here, or it may not have arrived yet")


def _hash(text: str) -> bytes:
    digits = text.removeprefix("0x")
    with suppress(ValueError):
        found = bytes.fromhex(digits)
        if len(digits) == 64 and len(found) == 32:
            return found
    raise ValueNotAllowed(f"hash: expected 64 hex digits, got {text[:80]!r}")


def _by_ethereum_hash(node: Node, wanted: bytes) -> ResultTx | None:
    """Return the node transaction that contains the Ethereum transaction with a hash, or
    ``None``."""
    if not node.has_evm:
        return None
    try:
        placed = node.evm("eth_getTransactionByHash", f"0x{wanted.hex()}")
    except ForwardedCallFailed:
        return None
    if placed is None or placed["blockNumber"] is None:
        return None
    block = node.call("block", height=int(placed["blockNumber"], 16)).block
    for each in block.txs:
        if wanted in _hashes(node, each):
            with suppress(NotFound):
                found: ResultTx = node.call("tx", hash=tx_hash(each))
                return found
    return None


def _hashes(node: Node, raw: bytes) -> tuple[bytes, ...]:
    """Return the hashes of the Ethereum transactions in a node transaction."""
    # Without the EVM layer, pages can't show Ethereum transactions.
    if not node.has_evm:
        return ()
    names = (each.other_hashes for each in features() if each.other_hashes)
    found = chain.from_iterable(load(name)(raw) for name in names)
    return tuple(islice(found, _MAX_ETHEREUM))


def _ethereum(node: Node, raw: bytes, abi: Abi | None) -> list[EthereumTx]:
    found: list[EthereumTx] = []
    for each in _hashes(node, raw):
        name = f"0x{each.hex()}"
        # Ignore an unknown hash: the bytes may not be an Ethereum transaction.
        with suppress(ForwardedCallFailed):
            json = node.evm("eth_getTransactionByHash", name)
            if json is not None:
                receipt = node.evm("eth_getTransactionReceipt", name)
                found.append(_decoded(json, receipt, abi))
    return found


def _decoded(
    json: dict[str, Any], receipt: dict[str, Any] | None, abi: Abi | None
) -> EthereumTx:
    logs = receipt["logs"] if receipt else []
    if abi is None:
        return EthereumTx(json, receipt, [Log(log, None) for log in logs], None)
    return EthereumTx(
        json,
        receipt,
        [Log(log, abi.log(_all_bytes(log["topics"]), _bytes(log["data"]))) for log in logs],
        abi.call(_bytes(json["input"])),
    )


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _all_bytes(texts: Iterable[str]) -> list[bytes]:
    return [_bytes(text) for text in texts]


VIEWS: dict[str, tuple[Callable[..., str | Response], str]] = {"/tx/<digest>": (tx, "tx")}
