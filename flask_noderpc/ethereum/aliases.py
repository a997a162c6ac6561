"""The keys that queries find Ethereum transactions by, beside those of the events themselves.

Ethermint emits ``ethereum_tx`` since its version 0.5 and ``ethereum`` before; its documents
still ask for the latter. It says the sender in ``message``. Needs nothing of the extra.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..domain.abci import Event

EVENT, ALIAS = "ethereum_tx", "ethereum"
_SENDER = "sender"

_KEY = re.compile(rf"(?:{EVENT}|{ALIAS})\.", re.ASCII)
_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}", re.ASCII)


def alias_keys(events: Iterable[Event]) -> dict[str, list[str]]:
    """What the events of one transaction add: each ``type.key`` with its values.

    Every attribute of ``ethereum_tx`` once more as ``ethereum.*``, and ``sender`` under both
    names where only ``message`` has it.
    """
    keys: dict[str, list[str]] = {}
    senders: list[str] = []
    for event in events:
        if event.type == EVENT:
            for attribute in event.attributes:
                key = f"{ALIAS}.{_text(attribute.key)}"
                keys.setdefault(key, []).append(_text(attribute.value))
        elif event.type == "message":
            senders += _evm_senders(event)
    if senders and keys and f"{ALIAS}.{_SENDER}" not in keys:
        keys[f"{ALIAS}.{_SENDER}"] = keys[f"{EVENT}.{_SENDER}"] = senders
    return keys


def comparable(key: str, value: str) -> str:
    """The value of a key as it compares: of Ethereum's keys, addresses in small letters.

    Events carry addresses in EIP-55's mixed letters, clients ask in any.
    """
    return value.lower() if _KEY.match(key) and _ADDRESS.fullmatch(value) else value


def _evm_senders(event: Event) -> Iterator[str]:
    """Of a ``message`` of the EVM; those of other modules have senders too."""
    if any((a.key, a.value) == (b"module", b"evm") for a in event.attributes):
        yield from (_text(a.value) for a in event.attributes if a.key == b"sender")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
