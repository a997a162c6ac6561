"""Aliases under which queries find the events of Ethereum transactions.

Ethermint emits ``ethereum_tx`` since version 0.5 and emitted ``ethereum`` before; its documents
still use the latter. The sender is in the event ``message``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..domain.abci import Event, EventAttribute
from ..feature import EventAliases

_EVENT, _ALIAS = "ethereum_tx", "ethereum"
_SENDER, _MODULE = b"sender", (b"module", b"evm")
_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}", re.ASCII)


def _with_aliases(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events with each ``ethereum_tx`` twice: with its ``sender``, and again under
    the type ``ethereum``."""
    found: list[Event] = []
    senders: tuple[EventAttribute, ...] = ()
    # Ethermint: the ``message`` event of a transaction follows its other events.
    for event in reversed(events):
        if event.type == "message":
            senders = _evm_senders(event) or senders
        if event.type == _EVENT:
            whole = _with_sender(event, senders)
            found += (replace(whole, type=_ALIAS), whole)
        else:
            found.append(event)
    return tuple(reversed(found))


def _with_sender(event: Event, senders: tuple[EventAttribute, ...]) -> Event:
    if any(attribute.key == _SENDER for attribute in event.attributes):
        return event
    return replace(event, attributes=(*event.attributes, *senders))


def _evm_senders(event: Event) -> tuple[EventAttribute, ...]:
    """Return the senders of a ``message`` event of the EVM module, not of other modules."""
    if all((a.key, a.value) != _MODULE for a in event.attributes):
        return ()
    return tuple(a for a in event.attributes if a.key == _SENDER)


def _is_address(value: str) -> bool:
    # Events contain addresses in the mixed case of EIP-55; clients query in any case.
    return len(value) == 42 and _ADDRESS.fullmatch(value) is not None


ALIASES = EventAliases(frozenset((_EVENT, _ALIAS)), _with_aliases, _is_address)
