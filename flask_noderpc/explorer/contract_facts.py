"""Facts of a contract's page: its code, its creation, and its latest events."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from flask import request

from .. import jsoncodec
from ..domain.abci import Event
from ..domain.facts import LogFacts
from ..errors import ForwardedCallFailed, NodeRPCError
from ..protocol.secp256k1eth import keccak, to_checksum
from .abi import Abi, DecodedAbi
from .accounts import HEX_ADDRESS
from .chain import integer, optional
from .history import RECENT
from .node import Node

_PAGE = 25
"""Number of events on a page."""
_DELEGATION = bytes.fromhex("ef0100")
"""Prefix of the code of an account that runs the code of a contract (EIP-7702)."""


@dataclass(frozen=True, slots=True)
class Code:
    """Code of a contract; ``delegate`` is empty unless the account delegates to another."""

    size: int
    hash: str
    hex: str
    delegate: str


def code_of(code: bytes) -> Code:
    """Return the facts of a contract's code."""
    is_delegation = code.startswith(_DELEGATION) and len(code) == len(_DELEGATION) + 20
    delegate = to_checksum(code[len(_DELEGATION) :]) if is_delegation else ""
    return Code(len(code), f"0x{keccak(code).hex()}", f"0x{code.hex()}", delegate)


@dataclass(frozen=True, slots=True)
class Creation:
    """Transaction and account that created a contract; ``hash`` is empty if only the genesis
    has the contract, or if its creation is unknown."""

    hash: str = ""
    height: int = 0
    creator: str = ""
    is_genesis: bool = False


def creation(node: Node, address: str) -> Creation:
    """Return the latest creation of a contract that the node's index of events has."""
    checksum = to_checksum(bytes.fromhex(address[2:]))
    found = optional(lambda: node.search(f"evm_calls.created='{checksum}'", size=1))
    if found and found.txs:
        made = found.txs[0]
        creator = _creator(made.tx_result.events, checksum)
        return Creation(made.hash.hex().upper(), made.height, creator)
    with suppress(ForwardedCallFailed):
        return Creation(is_genesis=node.evm("eth_getCode", address, "0x0") != "0x")
    return Creation()


class _Operation(jsoncodec.Struct, rename={"kind": "type", "sender": "from"}):
    """JSON of an operation in an event ``evm_calls``."""

    kind: str
    sender: str
    to: str


def _creator(events: Iterable[Event], address: str) -> str:
    """Return the contract that created another one in a subcall, or the sender of the
    transaction; empty if the events name neither."""
    sender = ""
    for event in events:
        for each in event.attributes:
            match event.type, each.key:
                case "evm_calls", b"operation" if maker := _maker(each.value, address):
                    return maker
                case "ethereum_tx", b"sender":
                    sender = sender or each.value.decode(errors="replace")
    return sender if HEX_ADDRESS.fullmatch(sender) else ""


def _maker(operation: bytes, address: str) -> str:
    """Return the account that an operation names as the creator of a contract, or an empty
    string."""
    # A foreign chain may emit anything under the same type.
    with suppress(ValueError):
        made = jsoncodec.decode(operation, _Operation)
        is_creation = made.kind.startswith("CREATE") and made.to == address.lower()
        if is_creation and HEX_ADDRESS.fullmatch(made.sender):
            return to_checksum(bytes.fromhex(made.sender[2:]))
    return ""


@dataclass(frozen=True, slots=True)
class Log:
    """A log and its transaction; ``decoded`` is ``None`` if the ABI does not have its event."""

    facts: LogFacts
    height: int
    tx_hash: str
    decoded: DecodedAbi | None


@dataclass(frozen=True, slots=True)
class Events:
    """Logs of a contract in a range of heights, newest first."""

    logs: tuple[Log, ...] = ()
    low: int = 0
    high: int = 0
    older: dict[str, Any] | None = None
    """Query parameters of the page with older logs; ``None`` on the last page."""
    error: str = ""
    """The reason if the logs can't be read."""


def events(node: Node, address: str, abi: Abi | None) -> Events:
    """Return a page of a contract's logs in at most :data:`~.history.RECENT` blocks, up to the
    height in the query parameter ``to``."""
    try:
        latest, lowest = node.latest(), node.lowest()
        high = min(integer("to", latest), latest)
        low = max(lowest, high - RECENT + 1)
        if high < low:
            return Events()
        wanted = {
            "address": address,
            "fromBlock": hex(low),
            "toBlock": hex(high),
            "limit": _PAGE,
            "order": "desc",
            "cursor": request.args.get("cursor") or None,
        }
        page = node.evm("eth_getLogs", wanted)
    except NodeRPCError as error:
        return Events(error=error.text_with_hint)
    older = {"to": low - 1} if low > lowest else None
    if page["cursor"]:
        older = {"to": high, "cursor": page["cursor"]}
    return Events(tuple(_log(log, abi) for log in page["logs"]), low, high, older)


def _log(json: dict[str, Any], abi: Abi | None) -> Log:
    topics, data = tuple(map(_bytes, json["topics"])), _bytes(json["data"])
    facts = LogFacts(int(json["logIndex"], 16), json["address"], topics, data)
    decoded = abi.log(topics, data) if abi else None
    return Log(facts, int(json["blockNumber"], 16), json["transactionHash"][2:], decoded)


def _bytes(digits: str) -> bytes:
    return bytes.fromhex(digits[2:])
