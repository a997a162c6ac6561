"""Transfers of tokens in the logs of a transaction: ERC-20, ERC-721 and ERC-1155."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from ...domain.facts import Fact, LogFacts, Table, in_unit
from ...errors import NodeRPCError
from ...protocol.secp256k1eth import keccak, to_checksum
from ..protocol.forms import WORD

Ask = Callable[..., Any]
"""A function that calls a method of Ethereum's JSON-RPC for the reader of a page."""

_SHOWN = 100
_ASKED_TOKENS = 5
"""Maximum number of tokens to ask for symbol and decimals, each with two calls."""
_CALL_GAS = "0x30d40"
_MAX_SYMBOL, _MAX_DECIMALS = 20, 36


def _selector(signature: bytes) -> str:
    return f"0x{keccak(signature)[:4].hex()}"


_TRANSFER = keccak(b"Transfer(address,address,uint256)")
_SINGLE = keccak(b"TransferSingle(address,address,address,uint256,uint256)")
_BATCH = keccak(b"TransferBatch(address,address,address,uint256[],uint256[])")
_SYMBOL, _DECIMALS = _selector(b"symbol()"), _selector(b"decimals()")


class _Transfer(NamedTuple):
    """A transfer; ``id`` is ``None`` for ERC-20, and ``amount`` for ERC-721."""

    token: str
    sender: str
    recipient: str
    id: int | None
    amount: int | None


def transfers(logs: Sequence[LogFacts], ask: Ask | None) -> Iterator[Table]:
    """Yield a table of the transfers in logs, if there are any. ``ask`` reads the symbols and
    decimals of the first tokens; without it, amounts are in the smallest unit."""
    found = list(islice((one for log in logs for one in _transfers(log)), _SHOWN + 1))
    if not found:
        return
    tokens = list(dict.fromkeys(each.token for each in found))[:_ASKED_TOKENS]
    units = {token: _unit(ask, token) for token in tokens} if ask else {}
    rows = tuple(
        (
            Fact("Token", each.token, is_account=True),
            Fact("From", each.sender, is_account=True),
            Fact("To", each.recipient, is_account=True),
            Fact("Amount or ID", _amount(each, *units.get(each.token, ("", 0)))),
        )
        for each in found[:_SHOWN]
    )
    note = f"The first {_SHOWN} are shown." if len(found) > _SHOWN else ""
    yield Table("Token transfers", rows, note)


def _transfers(log: LogFacts) -> Iterator[_Transfer]:
    kind, topics, data = log.topics[:1], log.topics[1:], log.data
    if kind == (_TRANSFER,) and len(topics) == 2 and len(data) == WORD:
        yield _between(log, *topics, None, int.from_bytes(data))
    elif kind == (_TRANSFER,) and len(topics) == 3 and not data:
        yield _between(log, *topics[:2], int.from_bytes(topics[2]), None)
    elif kind == (_SINGLE,) and len(topics) == 3 and len(data) == 2 * WORD:
        yield _between(log, *topics[1:], *(int.from_bytes(each) for each in _words(data)))
    elif kind == (_BATCH,) and len(topics) == 3:
        ids, amounts = (_array(data, place) for place in (0, WORD))
        for number, amount in zip(ids, amounts, strict=False):
            yield _between(log, *topics[1:], number, amount)


def _between(
    log: LogFacts, sender: bytes, recipient: bytes, number: int | None, amount: int | None
) -> _Transfer:
    own, other = to_checksum(sender[12:]), to_checksum(recipient[12:])
    return _Transfer(log.address, own, other, number, amount)


def _words(data: bytes) -> list[bytes]:
    return [data[at : at + WORD] for at in range(0, len(data), WORD)]


def _array(data: bytes, place: int) -> list[int]:
    """Return the numbers of an array in a log's data, at most one more than are shown."""
    start = int.from_bytes(data[place : place + WORD])
    count = min(int.from_bytes(data[start : start + WORD]), _SHOWN + 1)
    return [
        int.from_bytes(each) for each in _words(data[start + WORD : start + WORD * (count + 1)])
    ]


def _amount(moved: _Transfer, symbol: str, decimals: int) -> str:
    if moved.id is None:
        return in_unit(moved.amount or 0, decimals, symbol).rstrip()
    count = "" if moved.amount is None else f"{moved.amount:,} × "
    return f"{count}{symbol} ID {moved.id}".strip() if symbol else f"{count}ID {moved.id}"


def _unit(ask: Ask, token: str) -> tuple[str, int]:
    """Return the symbol and the decimals of a token; empty and 0 if it does not tell them."""
    symbol = _text(_call(ask, token, _SYMBOL))
    decimals = _call(ask, token, _DECIMALS) if symbol else b""
    number = int.from_bytes(decimals) if len(decimals) == WORD else 0
    return symbol, number if number <= _MAX_DECIMALS else 0


def _call(ask: Ask, token: str, selector: str) -> bytes:
    with suppress(NodeRPCError, ValueError):
        call = {"to": token, "data": selector, "gas": _CALL_GAS}
        return bytes.fromhex(ask("eth_call", call, "latest")[2:])
    return b""


def _text(output: bytes) -> str:
    """Return the string in the output of a call; early tokens return 32 bytes instead."""
    if len(output) >= 2 * WORD:
        size = int.from_bytes(output[WORD : 2 * WORD])
        output = output[2 * WORD : 2 * WORD + min(size, _MAX_SYMBOL)]
    return output[:_MAX_SYMBOL].rstrip(b"\0").decode(errors="replace")
