"""Responses of an ABCI application: events, results, queries."""

from __future__ import annotations

from dataclasses import dataclass

from ..jsoncodec import Struct
from .genesis import ConsensusParamsUpdate
from .validator import ValidatorUpdate


# A Struct instead of a dataclass: a block has hundreds of attributes, and a Struct is created
# in a quarter of the time.
class EventAttribute(Struct, frozen=True, gc=False):
    """Key and value of an event; ``index`` makes the attribute searchable."""

    key: bytes
    value: bytes
    index: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """An event that the application emitted for a transaction or a block."""

    type: str
    attributes: tuple[EventAttribute, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecTxResult:
    """Result of CheckTx or of executing a transaction; code 0 means success."""

    code: int = 0
    data: bytes = b""
    log: str = ""
    info: str = ""
    gas_wanted: int = 0
    gas_used: int = 0
    events: tuple[Event, ...] = ()
    codespace: str = ""
    form: bytes = b""
    """The node's own form of the JSON (see :mod:`flask_noderpc.wire.form`); usually empty."""


@dataclass(frozen=True, slots=True)
class BlockResults:
    """Results of executing one block."""

    height: int
    tx_results: tuple[ExecTxResult, ...] = ()
    begin_block_events: tuple[Event, ...] = ()
    end_block_events: tuple[Event, ...] = ()
    validator_updates: tuple[ValidatorUpdate, ...] = ()
    consensus_param_updates: ConsensusParamsUpdate | None = None
    app_hash: bytes = b""
    """App hash after this block; the next header contains it."""
    form: bytes = b""
    """The node's own form of the JSON, except for the results of transactions."""

    @property
    def block_events(self) -> tuple[Event, ...]:
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
    """Key of the value; ``None`` (JSON null) for module methods of the Cosmos SDK."""
    value: bytes = b""
    proof_ops: tuple[ProofOp, ...] = ()
    height: int = 0
    codespace: str = ""
    encodes_empty_as_string: bool = False
    """True encodes an empty value as an empty string instead of null, as the Cosmos SDK does
    for a message without fields."""
