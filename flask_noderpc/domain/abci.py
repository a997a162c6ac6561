"""Responses of an ABCI application: events, results, queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import eq
from typing import Any, overload

from ..jsoncodec import Document, Raw, Struct, elements, pack_each, unpack
from .genesis import ConsensusParamsUpdate
from .validator import ValidatorUpdate


# Use a Struct, which is created in a quarter of the time of a dataclass: a block may have
# hundreds of attributes.
class EventAttribute(Struct, frozen=True, gc=False):
    """Attribute of an event: key and value; searches find it if ``index`` is true."""

    key: bytes
    value: bytes
    index: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """An event that the application emitted for a transaction or a block."""

    type: str
    attributes: tuple[EventAttribute, ...] = ()


class PackedEvents(Sequence[Event]):
    """Events in MessagePack, for large blocks: as objects they would take several times the
    memory. Each iteration creates one event after the other.

    ``packed`` is a list with the type of each event and the flat list of its attributes' keys,
    values and ``index``.
    """

    __slots__ = ("_count", "packed")

    def __init__(self, packed: Document) -> None:
        self.packed, self._count = packed, len(elements(packed))

    @classmethod
    def of(cls, events: Iterable[Event]) -> PackedEvents:
        """Pack events one by one."""
        return cls(pack_each(map(_event_fields, events)))

    def __iter__(self) -> Iterator[Event]:
        return (_event_from(*unpack(each)) for each in elements(self.packed))

    def __reversed__(self) -> Iterator[Event]:
        return (_event_from(*unpack(each)) for each in reversed(elements(self.packed)))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Event, ...]: ...
    def __getitem__(self, index: int | slice) -> Event | tuple[Event, ...]:
        found = elements(self.packed)[index]
        if isinstance(found, list):
            return tuple(_event_from(*unpack(each)) for each in found)
        return _event_from(*unpack(found))

    def __add__(self, other: Events) -> Events:
        return PackedEvents.of(chain(self, other)) if other else self

    def __radd__(self, other: Events) -> Events:
        return PackedEvents.of(chain(other, self)) if other else self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedEvents | tuple):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))


Events = tuple[Event, ...] | PackedEvents
"""Events of a transaction or a block."""


def changed_events(events: Sequence[Event], made: Iterable[Event]) -> Sequence[Event]:
    """Return events that were made from others, packed if the others are packed."""
    return PackedEvents.of(made) if isinstance(events, PackedEvents) else tuple(made)


def pack_events(events: Events) -> object:
    """Return events as a value that :func:`~flask_noderpc.jsoncodec.pack` packs."""
    if isinstance(events, PackedEvents):
        return Raw(events.packed)
    return [_event_fields(event) for event in events]


def unpack_events(fields: Iterable[tuple[str, list[Any]]]) -> tuple[Event, ...]:
    """Return the events of an unpacked list."""
    return tuple([_event_from(*each) for each in fields])


def _event_fields(event: Event) -> tuple[str, list[object]]:
    return (
        event.type,
        [field for a in event.attributes for field in (a.key, a.value, a.index)],
    )


def _event_from(kind: str, flat: list[Any]) -> Event:
    return Event(kind, tuple(map(EventAttribute, flat[::3], flat[1::3], flat[2::3])))


@dataclass(frozen=True, slots=True)
class ExecTxResult:
    """Result of CheckTx or of executing a transaction; code 0 means success."""

    code: int = 0
    data: bytes = b""
    log: str = ""
    info: str = ""
    gas_wanted: int = 0
    gas_used: int = 0
    events: Events = ()
    codespace: str = ""
    form: bytes = b""
    """How the node's JSON differs from the usual JSON, such as in omitted members (see
    :mod:`flask_noderpc.wire.form`); usually empty."""


@dataclass(frozen=True, slots=True)
class BlockResults:
    """Results of executing one block."""

    height: int
    tx_results: tuple[ExecTxResult, ...] = ()
    begin_block_events: Events = ()
    end_block_events: Events = ()
    validator_updates: tuple[ValidatorUpdate, ...] = ()
    consensus_param_updates: ConsensusParamsUpdate | None = None
    app_hash: bytes = b""
    """App hash after this block; the next header contains it."""
    form: bytes = b""
    """How the node's JSON differs from the usual JSON (see :attr:`ExecTxResult.form`), except
    for the results of transactions."""

    @property
    def block_events(self) -> Events:
        """Events of the block itself, without its transactions' events."""
        return self.begin_block_events + self.end_block_events


@dataclass(frozen=True, slots=True)
class AppInfo:
    """Name and version of the application, and its last block."""

    data: str = ""
    version: str = ""
    app_version: int = 0
    last_block_height: int = 0
    last_block_app_hash: bytes = b""


@dataclass(frozen=True, slots=True)
class ProofOp:
    """One step of a proof that a light client verifies."""

    type: str
    key: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Result of an application query."""

    code: int = 0
    log: str = ""
    info: str = ""
    index: int = 0
    key: bytes | None = b""
    """Key of the value; ``None`` is JSON null, as queries of Cosmos SDK modules have it."""
    value: bytes = b""
    proof_ops: tuple[ProofOp, ...] = ()
    height: int = 0
    codespace: str = ""
    encodes_empty_as_string: bool = False
    """True to encode an empty value as an empty string instead of null, as the Cosmos SDK does
    for a message without fields."""
