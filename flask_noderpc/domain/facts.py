"""Facts about accounts and transactions that pages show, as features decode them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")


def in_words(kind: str) -> str:
    """Return the name of a protobuf type in words, such as "Send" for
    ``/cosmos.bank.v1beta1.MsgSend``."""
    words = _WORDS.findall(kind.rpartition(".")[2].removeprefix("Msg"))
    return " ".join(words).capitalize() or kind


def in_unit(amount: int, decimals: int, unit: str) -> str:
    """Return an amount of the smallest unit in a unit with ``decimals`` decimals, without
    rounding, such as "1,234.5 ether"."""
    whole, rest = divmod(abs(amount), 10**decimals)
    fraction = f".{rest:0{decimals}d}".rstrip("0") if rest else ""
    return f"{'-' if amount < 0 else ''}{whole:,}{fraction} {unit}"


class Fact(NamedTuple):
    """A title and its value in words."""

    title: str
    text: str
    is_account: bool = False
    """True if the text is an address, which pages link to its account."""


@dataclass(frozen=True, slots=True)
class Table:
    """Facts of the same kind, such as the transfers in a transaction. The facts of each row
    have the titles of the columns."""

    title: str
    rows: tuple[tuple[Fact, ...], ...] = ()
    note: str = ""
    """Sentence about rows that are left out, or about the reason for an empty table."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """A log that a contract emitted, and its number in the block."""

    number: int
    address: str
    topics: tuple[bytes, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """A message of a transaction: its name in words, its type, its fields, and tables of what
    it did. A message to a contract has bytes that the contract's ABI decodes."""

    title: str
    type: str
    facts: tuple[Fact, ...]
    tables: tuple[Table, ...] = ()
    contract: str = ""
    """Address of the contract whose ABI decodes the calldata."""
    calldata: bytes = b""
    error: bytes = b""
    """Output of a call that was reverted with an error of the contract."""
    logs: tuple[LogFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class TxFacts:
    """A decoded transaction: facts about all of it, and its messages in their order."""

    facts: tuple[Fact, ...]
    messages: tuple[MessageFacts, ...]


class Move(NamedTuple):
    """An amount in words that moved from one account to another."""

    sender: str
    recipient: str
    amount: str


@dataclass(frozen=True, slots=True)
class TxLine:
    """A transaction as one line of a list."""

    text: str = ""
    """Actions of the transaction in words; empty if its bytes can't be decoded."""
    failure: str = ""
    """Reason why it failed; empty for one that succeeded or is pending."""
    moves: tuple[Move, ...] = ()
    """Amounts that it moved, without fees."""
    ethereum_hash: str = ""
    """Hash of its Ethereum transaction with 0x, which lists show instead of the node's hash;
    empty unless it has exactly one."""
