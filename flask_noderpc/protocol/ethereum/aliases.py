"""Aliases of event keys by which queries find Ethereum transactions.

Ethermint emits ``ethereum_tx`` since its version 0.5 and ``ethereum`` before; its documents
still use the latter. The sender is in ``message``. Needs no library of the extra ``evm``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ...domain.abci import Event, EventAttribute

EVENT, ALIAS = "ethereum_tx", "ethereum"

_SENDER, _MODULE = b"sender", (b"module", b"evm")

_KEY = re.compile(rf"(?:{EVENT}|{ALIAS})\.", re.ASCII)
_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}", re.ASCII)


def with_aliases(events: Sequence[Event]) -> Sequence[Event]:
    """The events of a transaction as queries see them.

    Each ``ethereum_tx`` has its ``sender``, and stands there once more as ``ethereum``; the
    events of other transactions are handed back.
    """
    if all(event.type != EVENT for event in events):
        return events
    found: list[Event] = []
    senders: tuple[EventAttribute, ...] = ()
    # Ethermint: the message of a transaction follows its events.
    for event in reversed(events):
        if event.type == "message":
            senders = _evm_senders(event) or senders
        if event.type == EVENT:
            whole = _with_sender(event, senders)
            found += (replace(whole, type=ALIAS), whole)
        else:
            found.append(event)
    return tuple(reversed(found))


def searchable(events: Sequence[Event]) -> Sequence[Event]:
    """The events of a transaction as they are indexed: with aliases, values comparable."""
    if all(event.type not in (EVENT, ALIAS) for event in events):
        return events
    return tuple(
        _comparable(event) if event.type in (EVENT, ALIAS) else event
        for event in with_aliases(events)
    )


def comparable(key: str, value: str) -> str:
    """The value of a key as it compares: of Ethereum's keys, addresses in small letters.

    Events carry addresses in EIP-55's mixed letters, clients ask in any.
    """
    return value.lower() if has_addresses(key) and _ADDRESS.fullmatch(value) else value


def has_addresses(key: str) -> bool:
    """True if values of the key may be addresses, which compare without case."""
    # Most keys are distinguished by their prefix.
    return key.startswith(ALIAS) and _KEY.match(key) is not None


def _with_sender(event: Event, senders: tuple[EventAttribute, ...]) -> Event:
    if any(attribute.key == _SENDER for attribute in event.attributes):
        return event
    return replace(event, attributes=(*event.attributes, *senders))


def _evm_senders(event: Event) -> tuple[EventAttribute, ...]:
    """True for a ``message`` of the EVM; those of other modules have senders too."""
    if all((a.key, a.value) != _MODULE for a in event.attributes):
        return ()
    return tuple(a for a in event.attributes if a.key == _SENDER)


def _comparable(event: Event) -> Event:
    attributes = (
        EventAttribute(a.key, a.value.lower(), a.index) if _is_address(a.value) else a
        for a in event.attributes
    )
    return replace(event, attributes=tuple(attributes))


def _is_address(value: bytes) -> bool:
    return len(value) == 42 and _ADDRESS.fullmatch(value.decode("latin-1")) is not None
