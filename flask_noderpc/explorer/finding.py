"""Search page for a height, a hash, an address, a key, or an event query."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from flask import g, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from ..backends.base.backend import ChainBackend
from ..domain.block import BlockMeta
from ..domain.responses import ResultTx
from ..errors import BlockNotFound, NodeRPCError, NotFound, QuerySyntaxError, ValueNotAllowed
from ..events.query import check_length, parse
from .accounts import BECH32, HEX_ADDRESS
from .chain import MAX_HEIGHT_DIGITS, integer, optional
from .node import Node

_HASH = re.compile(r"(?:0[xX])?([0-9a-fA-F]{64})", re.ASCII)
_VALIDATOR = re.compile(r"[0-9a-fA-F]{40}", re.ASCII)
_OPERATOR = re.compile(r"[=<>]|\b(?:EXISTS|CONTAINS)\b")
PAGE = 25


def search() -> str | Response:
    """Page with the results of an event query, or a redirect to the page of what is
    searched."""
    node: Node = g.node
    text = request.args.get("q", "").strip()
    check_length(text)
    if not text:
        return render_template("noderpc_explorer/search.html", found=None)
    if text.isascii() and text.isdigit() and len(text) <= MAX_HEIGHT_DIGITS:
        return redirect(url_for(".block", height=int(text)))
    if match := _HASH.fullmatch(text):
        return _by_hash(node, match[1].lower())
    if BECH32.fullmatch(text) or HEX_ADDRESS.fullmatch(text):
        return redirect(url_for(".account", address=text))
    if _VALIDATOR.fullmatch(text) and _is_validator(node, bytes.fromhex(text)):
        return redirect(url_for(".validator", address=text.upper()))
    if _OPERATOR.search(text):
        return _query(node, text)
    return _key(node, text)


def _by_hash(node: Node, digits: str) -> Response:
    try:
        found = node.call("block_by_hash", hash=bytes.fromhex(digits)).block
    except BlockNotFound:
        found = None
    if found is not None:
        return redirect(url_for(".block", height=found.header.height))
    # Redirect even for an unknown hash, as the page of a transaction reports it.
    return redirect(url_for(".tx", digest=digits))


def _is_validator(node: Node, address: bytes) -> bool:
    members = optional(
        lambda: node.read("validators", lambda b: b.reads.validators(b.reads.latest_height()))
    )
    return members is not None and address in members.by_address


def _key(node: Node, text: str) -> Response:
    found = optional(lambda: node.call("abci_query", data=text.encode()).response)
    if found is not None and found.code == 0 and found.value:
        return redirect(url_for(".key", data=text))
    raise NotFound(
        f"nothing found for {text[:80]!r}",
        "search for a height, a hash, an address, a key of the application's state, or"
        " an event query such as tx.height > 5",
    )


def _query(node: Node, text: str) -> str | Response:
    """Return a page with the transactions or blocks that match an event query; if there is
    only one, a redirect to its page."""
    _check(text)
    page = max(1, integer("page", 1))
    kind = request.args.get("of", "txs")
    if kind not in ("txs", "blocks"):
        raise ValueNotAllowed(f"of: expected txs or blocks, got {kind[:40]!r}")
    if kind == "txs":
        found, total = _found_txs(node, text, page)
    else:
        found, total = _found_blocks(node, text, page)
    if total == 1 and found:
        return redirect(_page_of(found[0]))
    return render_template(
        "noderpc_explorer/search.html",
        found=found,
        total=total,
        kind=kind,
        page=page,
        pages=-(-total // PAGE),
    )


def _page_of(hit: ResultTx | BlockMeta) -> str:
    if isinstance(hit, ResultTx):
        return url_for(".tx", digest=hit.hash.hex().upper())
    return url_for(".block", height=hit.header.height)


def _check(text: str) -> None:
    try:
        parse(text)
    except QuerySyntaxError as error:
        raise ValueNotAllowed(
            f"expected an event query: {error.text}",
            "write KEY = 'TEXT' or KEY > NUMBER, joined by AND, such as app.key = 'name'",
        ) from None


def _found_txs(node: Node, text: str, page: int) -> tuple[Any, int]:
    found = node.search(text, page, PAGE)
    return found.txs, found.total


def _meta_at(height: int, backend: ChainBackend) -> BlockMeta:
    return backend.reads.block_meta(height)


def _found_blocks(node: Node, text: str, page: int) -> tuple[Any, int]:
    found = node.call("block_search", query=text, page=page, per_page=PAGE, order_by="desc")
    metas = []
    for each in found.blocks:
        try:
            height = each.block.header.height
            metas.append(node.read("block", partial(_meta_at, height)))
        except NodeRPCError:
            # Skip a block that was pruned since the search.
            continue
    return metas, found.total


VIEWS: dict[str, tuple[Callable[..., Any], str]] = {"/search": (search, "status")}
