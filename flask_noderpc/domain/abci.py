"""Responses of an ABCI application: events, results, queries."""

from __future__ import annotations

from dataclasses import dataclass

from ..jsoncodec import Struct
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
    """How the node's JSON differs from the usual JSON, such as in omitted members (see
    :mod:`flask_noderpc.wire.form`); usually empty."""


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
    """How the node's JSON differs from the usual JSON (see :attr:`ExecTxResult.form`), except
    for the results of transactions."""

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
    """Key of the value; ``None`` is JSON null, as queries of Cosmos SDK modules have it."""
    value: bytes = b""
    proof_ops: tuple[ProofOp, ...] = ()
    height: int = 0
    codespace: str = ""
    encodes_empty_as_string: bool = False
    """True to encode an empty value as an empty string instead of null, as the Cosmos SDK does
    for a message without fields."""
