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


class Fact(NamedTuple):
    """A title and its value in words."""

    title: str
    text: str
    is_account: bool = False
    """True if the text is an address, which pages link to its account."""


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """A message of a transaction: its name in words, its type, and its fields."""

    title: str
    type: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class TxFacts:
    """A decoded transaction: facts about all of it, and its messages in their order."""

    facts: tuple[Fact, ...]
    messages: tuple[MessageFacts, ...]
