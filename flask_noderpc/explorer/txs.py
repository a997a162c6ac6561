"""Explorer page of a transaction: result, what features decode, events and bytes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from flask import g, render_template, request
from werkzeug.wrappers import Response

from ..domain.facts import LogFacts, MessageFacts, TxFacts
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
_SHOWN_LOGS = 100
"""Maximum number of logs of a message, unless the page shows all values whole."""


@dataclass(frozen=True, slots=True)
class Section:
    """A message of a transaction, with what a pasted ABI decodes: calldata, the error of a
    contract, and logs. A member is ``None`` if the ABI does not have it."""

    message: MessageFacts
    call: DecodedAbi | None
    error: DecodedAbi | None
    logs: tuple[tuple[LogFacts, DecodedAbi | None], ...]


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
    facts = node.tx_facts(found.tx, found.tx_result)
    return render_template(
        "noderpc_explorer/tx.html",
        found=found,
        facts=facts,
        sections=_sections(facts, abi),
        time=node.time_of(found.height),
        abi=given,
        has_abi=abi is not None,
    )


def _sections(facts: TxFacts | None, abi: Abi | None) -> list[Section]:
    return [_section(each, abi) for each in facts.messages] if facts else []


def _section(message: MessageFacts, abi: Abi | None) -> Section:
    shown = message.logs if "whole" in request.args else message.logs[:_SHOWN_LOGS]
    if abi is None:
        return Section(message, None, None, tuple((each, None) for each in shown))
    logs = tuple((each, abi.log(each.topics, each.data)) for each in shown)
    return Section(message, abi.call(message.calldata), abi.error(message.error), logs)


def _pending_page(node: Node, wanted: bytes) -> str:
    """Return the page of a pending transaction; raise ``TxNotFound`` if it is not pending."""
    with suppress(NodeRPCError):
        for waiting in node.call("unconfirmed_txs", limit=_SCANNED_PENDING).txs:
            if wanted in (tx_hash(waiting), *_hashes(node, waiting)):
                facts = node.tx_facts(waiting, None)
                return render_template(
                    "noderpc_explorer/pending.html",
                    hash=tx_hash(waiting),
                    tx=waiting,
                    facts=facts,
                    sections=_sections(facts, None),
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
    # A fork has the transactions of the chain before it, but not the blocks.
    with suppress(NotFound):
        block = node.call("block", height=int(placed["blockNumber"], 16)).block
        for each in block.txs:
            if wanted in _hashes(node, each):
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


VIEWS: dict[str, tuple[Callable[..., str | Response], str]] = {"/tx/<digest>": (tx, "tx")}
FORMS: dict[str, tuple[Callable[..., str | Response], str]] = {
    "/tx/<digest>": (tx_with_abi, "tx")
}
