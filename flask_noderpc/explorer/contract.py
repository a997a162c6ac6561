"""Explorer page of a contract: creation, code, methods by a pasted ABI, and events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

from flask import g, render_template, request

from ..errors import ForwardedCallFailed, NotFound, ValueNotAllowed
from ..web.views import read_form
from .accounts import HEX_ADDRESS
from .node import Node
from .txs import MAX_ABI_BYTES

if TYPE_CHECKING:
    from .abi import Abi

Page = str | tuple[str, HTTPStatus]


def contract(address: str) -> Page:
    """Page of a contract, by its address."""
    return _page(address, {})


def contract_with_abi(address: str) -> Page:
    """Page of a contract with the ABI in a form, and the result of the method that the form
    calls."""
    read_form(MAX_ABI_BYTES)
    # Only fields of the form count: another site can link to a URL with parameters.
    return _page(address, request.form)


def _page(address: str, form: Mapping[str, str]) -> Page:
    node: Node = g.node
    code = _code(node, address)
    # Import these modules only with the EVM layer, as both need the extra ``evm``.
    from . import contract_facts, methods

    abi, trouble = _abi(form.get("abi", ""))
    outcomes = methods.run(node, abi, address, form) if abi else {}
    sending = methods.sending(node)
    page = render_template(
        "noderpc_explorer/contract.html",
        address=address,
        code=contract_facts.code_of(code),
        creation=contract_facts.creation(node, address),
        found=contract_facts.events(node, address, abi),
        shown=methods.listing(abi, form, outcomes) if abi else None,
        sending=sending,
        form=form,
        trouble=trouble,
    )
    is_refused = trouble or any(each.is_refused for each in outcomes.values())
    return (page, HTTPStatus.BAD_REQUEST) if is_refused else page


def _code(node: Node, address: str) -> bytes:
    """Return the code of a contract; raise an error if the account has none."""
    if not HEX_ADDRESS.fullmatch(address):
        raise ValueNotAllowed(f"address: expected 0x and 40 hex digits, got {address[:80]!r}")
    if not node.has_evm:
        raise NotFound("this node does not serve Ethereum's JSON-RPC, so it has no contracts")
    try:
        code = bytes.fromhex(node.evm("eth_getCode", address, "latest")[2:])
    except (ForwardedCallFailed, ValueError) as error:
        raise NotFound(f"the code of {address} can't be read: {error}") from None
    if not code:
        raise NotFound(
            f"the account {address} has no code", "its balance is on the page of the account"
        )
    return code


def _abi(document: str) -> tuple[Abi | None, str]:
    """Return the ABI in a JSON document, and the reason if it can't be read."""
    from .abi import Abi

    if not document.strip():
        return None, ""
    try:
        return Abi.parse(document), ""
    except ValueError as error:
        return None, f"the ABI can't be read: {error}"


VIEWS: dict[str, tuple[Callable[..., Page], str]] = {
    "/contract/<address>": (contract, "eth_getCode")
}
FORMS: dict[str, tuple[Callable[..., Page], str]] = {
    "/contract/<address>": (contract_with_abi, "eth_getCode")
}
