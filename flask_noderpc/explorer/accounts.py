"""Explorer pages for accounts, for keys of the application's state, and for queries."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import g, render_template, request
from werkzeug.wrappers import Response

from ..domain.abci import QueryResult
from ..errors import ForwardedCallFailed, NodeRPCError, SearchTooCostly, ValueNotAllowed
from . import history
from .chain import MAX_HEIGHT_DIGITS, optional
from .export import export
from .node import Node

BECH32 = re.compile(r"[a-z][a-z0-9]{0,82}1[02-9ac-hj-np-z]{38,}", re.ASCII)
HEX_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}", re.ASCII)

_MAX_ADDRESS = 128
_KEYS: dict[re.Pattern[str], tuple[str, ...]] = {
    BECH32: ("message.sender", "transfer.sender", "transfer.recipient"),
    HEX_ADDRESS: ("ethereum_tx.sender", "ethereum_tx.recipient"),
}


@dataclass(frozen=True, slots=True)
class EthereumAccount:
    """Balance in wei, nonce and code of an Ethereum account; the code is hex."""

    balance: int
    nonce: int
    code: str


def account(address: str) -> str:
    """Page of an account, by its bech32 or Ethereum address."""
    node: Node = g.node
    keys = _keys(address)
    wanted, after = history.wanted_range(node), history.wanted_place()
    found, error = history.Found(), ""
    try:
        found = history.search(node, address, keys, wanted, after)
    except NodeRPCError as refused:
        error = refused.text_with_hint
    facts, missing = node.account_facts(address)
    ethereum, trouble = _ethereum(node, address)
    return render_template(
        "noderpc_explorer/account.html",
        address=address,
        facts=facts,
        found=found,
        error=error,
        wanted=wanted,
        is_first=after is None,
        recent=history.RECENT,
        most=history.MAX_EXPORT,
        ethereum=ethereum,
        trouble=trouble or missing,
    )


def account_file(address: str, kind: str) -> Response:
    """File with the transactions of an account, as ``csv`` or ``json``."""
    node: Node = g.node
    keys, most = _keys(address), history.MAX_EXPORT
    if kind not in ("csv", "json"):
        raise ValueNotAllowed(f"file: expected txs.csv or txs.json, got txs.{kind[:40]}")
    wanted, after = history.wanted_range(node), history.wanted_place()
    found = history.read_page(node, address, keys, wanted, after, most)
    if found.following and kind == "csv":
        # A table has no place for the cursor of the rest.
        raise SearchTooCostly(
            f"the account has more than {most:,} transactions in this range",
            "narrow it by from and to, which are heights or dates, or take the JSON file",
        )
    return export(node, address, found, kind)


def _keys(address: str) -> tuple[str, ...]:
    """Return the keys of events that have the address of an account; raise
    ``ValueNotAllowed``."""
    keys = next((keys for kind, keys in _KEYS.items() if kind.fullmatch(address)), None)
    if keys is None or len(address) > _MAX_ADDRESS:
        raise ValueNotAllowed(
            f"address: expected 0x and 40 hex digits, or a bech32 address, got {address[:80]!r}"
        )
    return keys


def _ethereum(node: Node, address: str) -> tuple[EthereumAccount | None, str]:
    """Return the account in the Ethereum state or ``None``, and the reason if it can't be
    read."""
    if not node.has_evm or not HEX_ADDRESS.fullmatch(address):
        return None, ""
    try:
        balance, nonce, code = (
            node.evm(method, address, "latest")
            for method in ("eth_getBalance", "eth_getTransactionCount", "eth_getCode")
        )
    except ForwardedCallFailed as error:
        return None, str(error)
    return EthereumAccount(int(balance, 16), int(nonce, 16), code), ""


def key() -> str:
    """Page of a key of the application's state: its value, and transactions that changed
    it."""
    node: Node = g.node
    data = request.args.get("data", "")
    found: QueryResult = node.call("abci_query", data=data.encode()).response
    # Event queries have no escape for a quote, so such a key can't be searched.
    changes = None if "'" in data else optional(lambda: node.search(f"app.key='{data}'"))
    return render_template("noderpc_explorer/key.html", data=data, found=found, changes=changes)


def query() -> str:
    """Page with the result of a query of the application, by path, data and height."""
    node: Node = g.node
    path, data = request.args.get("path", ""), request.args.get("data", "")
    height = request.args.get("height", "").strip() or "0"
    if not (height.isascii() and height.isdigit() and len(height) <= MAX_HEIGHT_DIGITS):
        raise ValueNotAllowed(
            f"height: expected a number, 0 for the latest, got {height[:40]!r}"
        )
    found = node.call("abci_query", path=path, data=_bytes(data), height=int(height))
    return render_template(
        "noderpc_explorer/query.html", path=path, data=data, height=height, found=found.response
    )


def _bytes(text: str) -> bytes:
    """Return the bytes of a text in UTF-8, or of hex digits after 0x."""
    if text[:2] in ("0x", "0X"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise ValueNotAllowed(
                "data: expected an even number of hex digits after 0x"
            ) from None
    return text.encode()


VIEWS: dict[str, tuple[Callable[..., Any], str]] = {
    "/account/<address>": (account, "tx_search"),
    "/account/<address>/txs.<kind>": (account_file, "tx_search"),
    "/key": (key, "abci_query"),
    "/query": (query, "abci_query"),
}
