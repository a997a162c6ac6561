"""Data of the events of a committed block, one class per event type."""

from __future__ import annotations

from dataclasses import dataclass

from .abci import BlockResults, Events, ExecTxResult
from .block import BlockID, Evidence, Header, Vote
from .responses import ResultBlock
from .validator import Validator


@dataclass(frozen=True, slots=True)
class NewBlock:
    """A block and its execution results."""

    result_block: ResultBlock
    results: BlockResults


@dataclass(frozen=True, slots=True)
class NewBlockHeader:
    """A block's header; older versions of CometBFT also send the results."""

    header: Header
    tx_count: int
    results: BlockResults


@dataclass(frozen=True, slots=True)
class NewBlockEvents:
    """Events of a block that do not belong to a transaction."""

    height: int
    events: Events
    tx_count: int


@dataclass(frozen=True, slots=True)
class NewEvidence:
    """A piece of evidence in a block, and the validators that it accuses."""

    height: int
    evidence: Evidence
    byzantine_validators: tuple[Validator, ...]


@dataclass(frozen=True, slots=True)
class TxCommitted:
    """A transaction in a block."""

    height: int
    index: int
    tx: bytes
    result: ExecTxResult


@dataclass(frozen=True, slots=True)
class ValidatorSetUpdates:
    """Validators whose power a block changed."""

    validators: tuple[Validator, ...]


@dataclass(frozen=True, slots=True)
class NewRound:
    """Start of a round, with its proposer."""

    height: int
    round: int
    step: str
    proposer: bytes
    proposer_index: int


@dataclass(frozen=True, slots=True)
class RoundState:
    """A consensus step of a round."""

    height: int
    round: int
    step: str


@dataclass(frozen=True, slots=True)
class CompleteProposal:
    """The proposed block of a round is complete."""

    height: int
    round: int
    step: str
    block_id: BlockID


@dataclass(frozen=True, slots=True)
class VoteCast:
    """A validator's vote."""

    vote: Vote
