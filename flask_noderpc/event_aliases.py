"""Aliases of event types, and case-insensitive comparison of event values, for queries.

Features declare both: Ethermint's events have two names, and Ethereum's addresses may be in
upper or lower case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache

from .domain.abci import Event, EventAttribute, changed_events
from .feature import EventAliases, features


def with_aliases(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events of a transaction, and copies under their aliases."""
    for aliases in {id(each): each for each in _of(events)}.values():
        events = aliases.with_aliases(events)
    return events


def searchable(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events of a transaction to index: with aliases, and with values that ignore
    case in lower case."""
    if not any(_of(events)):
        return events
    return changed_events(events, map(_comparable, with_aliases(events)))


def has_aliases(key: str) -> bool:
    """Return true for a key whose values may be compared case-insensitively."""
    return _of_key(key) is not None


def comparable(key: str, value: str) -> str:
    """Return the value of a key to compare: in lower case if comparisons ignore case."""
    aliases = _of_key(key)
    return value.lower() if aliases is not None and aliases.ignores_case(value) else value


@lru_cache(4096)
def _of_key(key: str) -> EventAliases | None:
    return _by_type().get(key.partition(".")[0])


def _of(events: Sequence[Event]) -> list[EventAliases]:
    known = _by_type()
    return [known[event.type] for event in events if event.type in known]


def _comparable(event: Event) -> Event:
    aliases = _by_type().get(event.type)
    if aliases is None:
        return event
    attributes = (
        EventAttribute(each.key, each.value.lower(), each.index)
        if aliases.ignores_case(each.value.decode("latin-1"))
        else each
        for each in event.attributes
    )
    return replace(event, attributes=tuple(attributes))


@cache
def _by_type() -> dict[str, EventAliases]:
    declared = (each.event_aliases for each in features())
    return {kind: each for each in declared if each is not None for kind in each.types}
