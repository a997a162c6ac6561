"""Methods of a contract on its page: forms for their arguments, and what a call returns.

The methods of the node decide who may call and who may send: a page of another site can send
this form, but the node refuses to sign for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ForwardedCallFailed
from .abi import Abi, DecodedAbi, Entry
from .abi_arguments import calldata
from .abi_types import Parameter
from .chain import MAX_HEIGHT_DIGITS
from .node import Node

_MAX_FIELDS = 800
"""Maximum number of fields in all forms; Flask reads at most 1,000 of a request."""
_MAX_SENDERS = 50
_WEI = 10**18
"""Number of wei in an ether."""
_ETHER = re.compile(r"(\d{1,59})(?:\.(\d{1,18}))?", re.ASCII)
_DATA = re.compile(r"0x(?:[0-9a-f]{2})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a call: one of a result, a transaction, calldata or an error."""

    result: DecodedAbi | None = None
    raw: str = ""
    """Result that does not fit the outputs of the ABI."""
    hash: str = ""
    """Ethereum hash of the transaction that was sent."""
    call: Mapping[str, str] | None = None
    """Transaction for a wallet: ``chainId``, ``to``, ``data`` and ``value``."""
    error: str = ""
    revert: DecodedAbi | None = None
    """The error with which the contract reverted."""
    is_refused: bool = False
    """True if an argument is wrong, so that nothing was called."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form, with the text in it."""

    name: str
    parameter: Parameter
    text: str


@dataclass(frozen=True, slots=True)
class Method:
    """A function of a contract with the fields for its arguments."""

    function: Entry
    key: str
    """Selector as hex, which the names of the fields begin with."""
    fields: Sequence[Field]
    value: str
    outcome: Outcome | None

    @property
    def is_open(self) -> bool:
        """True if the form has a text or an outcome to show."""
        texts = [each.text for each in self.fields if each.parameter.type.name != "bool"]
        return bool(self.outcome or self.value or any(texts))


@dataclass(frozen=True, slots=True)
class Listing:
    """Methods that only read, methods that write, and the number of those left out."""

    reading: Sequence[Method]
    writing: Sequence[Method]
    left: int


@dataclass(frozen=True, slots=True)
class Sending:
    """Accounts whose transactions the node signs, or the reason why it refuses the page's
    reader."""

    accounts: Sequence[str] = ()
    refusal: str = ""


def sending(node: Node) -> Sending:
    """Return the accounts for which the node signs; none if it has no keys."""
    try:
        accounts = node.evm("eth_accounts")[:_MAX_SENDERS]
    except ForwardedCallFailed:
        return Sending()
    refusal = node.refusal("eth_sendTransaction", "evm") if accounts else ""
    return Sending(() if refusal else accounts, refusal)


def listing(abi: Abi, form: Mapping[str, str], outcomes: Mapping[str, Outcome]) -> Listing:
    """Return the methods of an ABI by name, with the texts of a form."""
    found: list[Method] = []
    left, functions = _MAX_FIELDS, sorted(abi.functions.values(), key=lambda each: each.name)
    for function in functions:
        left -= len(function.inputs) + 1
        if left >= 0:
            key = function.selector.hex()
            names = zip(_names(key, function), function.inputs, strict=True)
            # A form sends line breaks as CRLF.
            fields = [
                Field(name, each, form.get(name, "").replace("\r\n", "\n"))
                for name, each in names
            ]
            value = form.get(f"{key}.value", "")
            found.append(Method(function, key, fields, value, outcomes.get(key)))
    return Listing(
        [each for each in found if each.function.reads],
        [each for each in found if not each.function.reads],
        len(functions) - len(found),
    )


def _names(key: str, function: Entry) -> list[str]:
    return [f"{key}.{index}" for index in range(len(function.inputs))]


def run(node: Node, abi: Abi, address: str, form: Mapping[str, str]) -> dict[str, Outcome]:
    """Do what the button of a form says: ``read``, ``calldata`` or ``send``; return the
    outcome by the method's key, empty for another button."""
    functions = {each.hex(): function for each, function in abi.functions.items()}
    for action, act in (("read", _read), ("calldata", _calldata), ("send", _send)):
        key = form.get(action, "")
        function = functions.get(key)
        if function is None:
            continue
        try:
            texts = [form.get(name, "") for name in _names(key, function)]
            call = {"to": address, "data": f"0x{calldata(function, texts).hex()}"}
            if function.mutability == "payable":
                call["value"] = hex(_wei(form.get(f"{key}.value", "")))
            return {key: act(node, function, call, form)}
        except ValueError as error:
            return {key: Outcome(error=str(error), is_refused=True)}
        except ForwardedCallFailed as failed:
            return {key: _failure(abi, failed.error)}
    return {}


def _read(
    node: Node, function: Entry, call: dict[str, str], form: Mapping[str, str]
) -> Outcome:
    found = node.evm("eth_call", call, _block(form.get("height", "").strip()))
    result = function.result(bytes.fromhex(found[2:]))
    return Outcome(result=result, raw="" if result else found)


def _calldata(
    node: Node, function: Entry, call: dict[str, str], form: Mapping[str, str]
) -> Outcome:
    return Outcome(call={"chainId": node.evm("eth_chainId"), "value": "0x0", **call})


def _send(
    node: Node, function: Entry, call: dict[str, str], form: Mapping[str, str]
) -> Outcome:
    sender = form.get("from", "")
    return Outcome(hash=node.evm("eth_sendTransaction", {"from": sender, **call}))


def _block(height: str) -> str:
    """Return the block of a call as Ethereum's JSON-RPC names it; raise :exc:`ValueError`."""
    if not height:
        return "latest"
    if not (height.isascii() and height.isdigit() and len(height) <= MAX_HEIGHT_DIGITS):
        raise ValueError(f"height: expected a number or nothing, got {height[:40]!r}")
    return hex(int(height))


def _wei(ether: str) -> int:
    """Return an amount of ether in wei; raise :exc:`ValueError`."""
    found = _ETHER.fullmatch(ether.strip() or "0")
    if found is None:
        raise ValueError(
            "value: expected an amount of ether such as 1.5, with at most 18 decimals, got"
            f" {ether[:40]!r}"
        )
    return int(found[1]) * _WEI + int((found[2] or "").ljust(18, "0"))


def _failure(abi: Abi, error: Mapping[str, Any]) -> Outcome:
    """Return why the node refused a call, or with which error the contract reverted."""
    message, data = str(error.get("message", "")), error.get("data")
    if not isinstance(data, str):
        return Outcome(error=message)
    if not _DATA.fullmatch(data):
        return Outcome(error=f"{message}: {data}")
    revert = abi.error(bytes.fromhex(data[2:]))
    return Outcome(error=message, revert=revert, raw="" if revert else data)
