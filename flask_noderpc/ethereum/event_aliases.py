"""Aliases by which queries find the events of Ethereum transactions.

Ethermint emits ``ethereum_tx`` since version 0.5 and emitted ``ethereum`` before; its docs
still use the old name. The sender is in another event, ``message``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..domain.abci import Event, EventAttribute, changed_events
from ..feature import EventAliases

_EVENT, _ALIAS, _CALLS = "ethereum_tx", "ethereum", "evm_calls"
_SENDER, _MODULE = b"sender", (b"module", b"evm")
_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}", re.ASCII)


def _with_aliases(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events, with the sender added to each ``ethereum_tx``, and a copy of it with
    the type ``ethereum``."""
    senders: tuple[EventAttribute, ...] = ()
    senders_of: dict[int, tuple[EventAttribute, ...]] = {}
    # Iterate backwards: Ethermint emits a transaction's ``message`` after its other events.
    for number, event in zip(range(len(events) - 1, -1, -1), reversed(events), strict=True):
        if event.type == "message":
            senders = _evm_senders(event) or senders
        if event.type == _EVENT:
            senders_of[number] = senders
    return changed_events(events, _each(events, senders_of))


def _each(
    events: Sequence[Event], senders_of: Mapping[int, tuple[EventAttribute, ...]]
) -> Iterator[Event]:
    for number, event in enumerate(events):
        if number in senders_of:
            whole = _with_sender(event, senders_of[number])
            yield whole
            yield replace(whole, type=_ALIAS)
        else:
            yield event


def _with_sender(event: Event, senders: tuple[EventAttribute, ...]) -> Event:
    if any(attribute.key == _SENDER for attribute in event.attributes):
        return event
    return replace(event, attributes=(*event.attributes, *senders))


def _evm_senders(event: Event) -> tuple[EventAttribute, ...]:
    """Return the senders of a ``message`` event; empty if another module emitted it."""
    if all((a.key, a.value) != _MODULE for a in event.attributes):
        return ()
    return tuple(a for a in event.attributes if a.key == _SENDER)


def _is_address(value: str) -> bool:
    # Addresses are compared in any case: events have EIP-55's mixed case, clients any other.
    return len(value) == 42 and _ADDRESS.fullmatch(value) is not None


ALIASES = EventAliases(frozenset((_EVENT, _ALIAS, _CALLS)), _with_aliases, _is_address)
