"""Explorer pages: overview, lists of blocks and transactions, a block, mempool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import g, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from ..domain.abci import BlockResults, ExecTxResult
from ..domain.block import BlockIDFlag, BlockMeta
from ..domain.time import SECOND
from ..errors import (
    BlockNotFound,
    HeightNotAvailable,
    NodeRPCError,
    ResultNotFound,
    ValueNotAllowed,
)
from ..protocol.comet.hashes import tx_hash
from .node import Node

View = Callable[..., "str | Response"]

BLOCKS, TXS = 20, 50
"""Number of rows in lists of blocks and of transactions."""
TXS_OF_BLOCK = 100
"""Maximum number of transactions on one page of a block."""
MAX_HEIGHT_DIGITS = 18
"""Maximum digits of a height, which is then certainly below 2^63."""


@dataclass(frozen=True, slots=True)
class Row:
    """A transaction in a list; ``result`` is ``None`` if it is not available."""

    hash: bytes
    height: int
    tx: bytes
    result: ExecTxResult | None


def integer(name: str, default: int) -> int:
    """Return the number in a query parameter, or ``default`` if it is empty; raise
    ``ValueNotAllowed`` for other text."""
    value = request.args.get(name, "").strip()
    if not value:
        return default
    if not (value.isascii() and value.isdigit() and len(value) <= MAX_HEIGHT_DIGITS):
        raise ValueNotAllowed(f"{name}: expected a number, got {value[:40]!r}")
    return int(value)


def overview() -> str:
    """Page with the latest blocks and transactions, and the node's status."""
    node: Node = g.node
    status = node.call("status")
    latest = status.sync_info.latest_block_height
    metas = node.metas(latest, BLOCKS)
    return render_template(
        "noderpc_explorer/overview.html",
        status=status,
        metas=metas[:10],
        sample=len(metas),
        rows=latest_rows(node, 10),
        block_time=mean_block_time(metas),
        pending=optional(lambda: node.call("num_unconfirmed_txs")),
        validators=optional(lambda: node.call("validators").total) if latest else None,
        progress=node.read("status", lambda backend: backend.backfill_progress()),
    )


def optional(read: Callable[[], Any]) -> Any:
    """Return what ``read`` returns, or ``None`` if the node refuses the call or has no
    result."""
    try:
        return read()
    except NodeRPCError:
        return None


def mean_block_time(metas: list[BlockMeta]) -> float | None:
    """Return the mean seconds between the blocks of ``metas``, newest first; ``None`` for
    fewer than two blocks."""
    if len(metas) < 2:
        return None
    return (metas[0].header.time - metas[-1].header.time) / SECOND / (len(metas) - 1)


def latest_rows(node: Node, limit: int) -> list[Row]:
    """Return the newest transactions; empty if the page's reader may not read them."""
    found = (
        optional(lambda: node.read("tx", lambda backend: backend.reads.latest_txs(limit))) or ()
    )
    return [Row(tx_hash(each.tx), each.height, each.tx, each.result) for each in found]


def blocks() -> str:
    """Page with a list of blocks, from a height downwards."""
    node: Node = g.node
    latest = node.latest()
    high = min(integer("to", latest), latest)
    lowest = node.lowest()
    if latest and high < lowest:
        raise HeightNotAvailable(high, lowest, latest)
    metas = node.metas(high, BLOCKS)
    last = metas[-1].header.height if metas else 0
    return render_template(
        "noderpc_explorer/blocks.html",
        metas=metas,
        newer=min(high + BLOCKS, latest) if high < latest else None,
        older=last - 1 if last > lowest else None,
        is_newest=high == latest,
        lowest=lowest,
    )


def latest_txs() -> str:
    """Page with the newest transactions."""
    g.node.call("health")
    return render_template("noderpc_explorer/txs.html", rows=latest_rows(g.node, TXS))


def block(height: str) -> str | Response:
    """Page of a block, by its height or its hash."""
    node: Node = g.node
    if not (height.isascii() and height.isdigit() and len(height) <= MAX_HEIGHT_DIGITS):
        wanted = _hash(height)
        found = node.call("block_by_hash", hash=wanted)
        if found.block is None:
            raise BlockNotFound(wanted)
        return redirect(url_for(".block", height=found.block.header.height))
    found = node.call("block", height=int(height))
    block_hash, content = found.block_id.hash, found.block
    page, total = max(1, integer("page", 1)), len(content.txs)
    if page > max(1, -(-total // TXS_OF_BLOCK)):
        raise ValueNotAllowed(
            f"page: expected at most {max(1, -(-total // TXS_OF_BLOCK))} for {total}"
            f" transactions, got {page}"
        )
    results, missing = results_of(node, int(height))
    first = (page - 1) * TXS_OF_BLOCK
    rows = [
        Row(tx_hash(tx), content.header.height, tx, result_at(results, index))
        for index, tx in enumerate(content.txs[first : first + TXS_OF_BLOCK], first)
    ]
    return render_template(
        "noderpc_explorer/block.html",
        block_hash=block_hash,
        header=content.header,
        meta=optional(lambda: node.read("block", lambda b: b.reads.block_meta(int(height)))),
        evidence=content.evidence,
        signed=optional(lambda: _signatures(node, int(height))),
        rows=rows,
        first=first,
        page=page,
        pages=-(-total // TXS_OF_BLOCK),
        total=total,
        results=results,
        missing=missing,
        latest=node.latest(),
    )


def _hash(text: str) -> bytes:
    digits = text.removeprefix("0x")
    try:
        found = bytes.fromhex(digits)
    except ValueError:
        found = b""
    if len(found) != 32 or len(digits) != 64:
        raise ValueNotAllowed(
            f"block: expected a height or a hash of 64 hex digits, got {text[:80]!r}"
        )
    return found


def results_of(node: Node, height: int) -> tuple[BlockResults | None, str]:
    """Return the results of a block or ``None``, and the reason if they are not available."""
    try:
        return node.call("block_results", height=height), ""
    except (ResultNotFound, HeightNotAvailable) as error:
        return None, error.text_with_hint


def result_at(results: BlockResults | None, index: int) -> ExecTxResult | None:
    """Return the result of a transaction by its index in the block; ``None`` if unknown."""
    if results is None or index >= len(results.tx_results):
        return None
    return results.tx_results[index]


def _signatures(node: Node, height: int) -> tuple[int, int]:
    """Return the number of validators that signed a block, and of all validators."""
    sigs = node.call("commit", height=height).signed_header.commit.signatures
    return sum(sig.block_id_flag == BlockIDFlag.COMMIT for sig in sigs), len(sigs)


def mempool() -> str:
    """Page with the pending transactions."""
    pending = g.node.call("unconfirmed_txs", limit=100)
    rows = [Row(tx_hash(tx), 0, tx, None) for tx in pending.txs]
    return render_template("noderpc_explorer/mempool.html", pending=pending, rows=rows)


VIEWS: dict[str, tuple[View, str]] = {
    "/": (overview, "status"),
    "/blocks": (blocks, "blockchain"),
    "/txs": (latest_txs, "tx_search"),
    "/block/<height>": (block, "block"),
    "/mempool": (mempool, "unconfirmed_txs"),
}
"""Views by URL rule, each with the RPC method that its readers must be allowed to call."""
