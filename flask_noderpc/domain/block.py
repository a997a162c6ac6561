"""Blocks, commits, votes, evidence, and the consensus state between two blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from .time import ZERO_TIME
from .validator import Validator, ValidatorSet


@dataclass(frozen=True, slots=True)
class PartSetHeader:
    """Number of parts of a serialised block, and their Merkle root."""

    total: int = 0
    hash: bytes = b""


@dataclass(frozen=True, slots=True)
class BlockID:
    """Header hash and part set of a block; all fields are empty for "no block"."""

    hash: bytes = b""
    parts: PartSetHeader = PartSetHeader()


NO_BLOCK = BlockID()


@dataclass(frozen=True, slots=True)
class Version:
    """Protocol versions of a header."""

    block: int = 11
    """Block protocol version, which is 11 in CometBFT 0.34 to 1.0."""
    app: int = 0


@dataclass(frozen=True, slots=True)
class Header:
    """The fourteen hashed fields of a block, in their hashed order."""

    version: Version
    chain_id: str
    height: int
    time: int
    """Nanoseconds since 1970: the genesis time for the first block, then the weighted median of
    the votes' times."""
    last_block_id: BlockID
    last_commit_hash: bytes
    data_hash: bytes
    validators_hash: bytes
    next_validators_hash: bytes
    consensus_hash: bytes
    app_hash: bytes
    """Hash of the application's state after the previous block."""
    last_results_hash: bytes
    evidence_hash: bytes
    proposer_address: bytes


class BlockIDFlag(IntEnum):
    """Kind of a validator's precommit in a commit."""

    ABSENT = 1
    COMMIT = 2
    NIL = 3


@dataclass(frozen=True, slots=True)
class CommitSig:
    """One validator's precommit in a commit."""

    block_id_flag: int
    validator_address: bytes = b""
    timestamp: int = ZERO_TIME
    signature: bytes = b""


ABSENT = CommitSig(BlockIDFlag.ABSENT)


@dataclass(frozen=True, slots=True)
class Commit:
    """Precommits for one block, one per validator in the order of the validator set."""

    height: int = 0
    round: int = 0
    block_id: BlockID = NO_BLOCK
    signatures: tuple[CommitSig, ...] = ()


NO_COMMIT = Commit()


class VoteType(IntEnum):
    """Signed message types."""

    PREVOTE = 1
    PRECOMMIT = 2
    PROPOSAL = 32


@dataclass(frozen=True, slots=True)
class Vote:
    """A signed prevote or precommit."""

    type: int
    height: int
    round: int
    block_id: BlockID
    timestamp: int
    validator_address: bytes
    validator_index: int
    signature: bytes = b""
    extension: bytes = b""
    extension_signature: bytes = b""


@dataclass(frozen=True, slots=True)
class DuplicateVoteEvidence:
    """Two votes of one validator for different blocks at the same step."""

    vote_a: Vote
    vote_b: Vote
    total_voting_power: int
    validator_power: int
    timestamp: int
    """Time of the chain's block at the votes' height."""

    @property
    def height(self) -> int:
        """Height of the offence."""
        return self.vote_a.height


@dataclass(frozen=True, slots=True)
class SignedHeader:
    """A header and the commit that finalised it."""

    header: Header
    commit: Commit
    form: bytes = b""
    """How the block's JSON differs from the usual JSON; see :attr:`Block.form`."""


@dataclass(frozen=True, slots=True)
class LightBlock:
    """A signed header and its validator set, whose members keep the order in which they were
    encoded."""

    signed_header: SignedHeader
    validators: tuple[Validator, ...]
    proposer: Validator


@dataclass(frozen=True, slots=True)
class LightClientAttackEvidence:
    """A conflicting block that was served to light clients and is not part of the chain."""

    conflicting_block: LightBlock
    common_height: int
    """Height of the last block that both chains have in common."""
    byzantine_validators: tuple[Validator, ...]
    """Accused validators; empty for an amnesia attack."""
    total_voting_power: int
    timestamp: int
    """Time of the block at the common height."""

    @property
    def height(self) -> int:
        """Height of the offence."""
        return self.common_height


Evidence = DuplicateVoteEvidence | LightClientAttackEvidence


@dataclass(frozen=True, slots=True)
class Block:
    """Header, transactions, evidence and last commit of a block."""

    header: Header
    txs: tuple[bytes, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    last_commit: Commit = NO_COMMIT
    form: bytes = b""
    """How the node's JSON differs from the usual JSON, such as in omitted members (see
    :mod:`flask_noderpc.wire.form`); usually empty."""


@dataclass(frozen=True, slots=True)
class BlockMeta:
    """Summary of a block, as ``blockchain`` lists it."""

    block_id: BlockID
    size: int
    """Size of the canonical serialisation in bytes."""
    header: Header
    tx_count: int
    form: bytes = b""
    """How the block's JSON differs from the usual JSON; see :attr:`Block.form`."""


@dataclass(frozen=True, slots=True)
class MerkleProof:
    """Inclusion proof of one leaf under a Merkle root."""

    total: int
    index: int
    leaf_hash: bytes
    aunts: tuple[bytes, ...] = field(default=())
    """Sibling hashes from the leaf upwards."""


@dataclass(frozen=True, slots=True)
class TxProof:
    """Inclusion proof of a transaction under a block's data hash."""

    root_hash: bytes
    tx: bytes
    proof: MerkleProof


@dataclass(frozen=True, slots=True)
class VoteSet:
    """Votes of one type in one round, in validator order; ``None`` for an absent vote."""

    votes: tuple[Vote | None, ...]
    voted_power: int
    total_power: int


@dataclass(frozen=True, slots=True)
class RoundState:
    """State of round 0 of the next height, before any proposal."""

    height: int
    start_time: int
    commit_time: int
    """Time of the last commit; Go's zero time before the first block."""
    validators: ValidatorSet
    """Validator set of the next height."""
    last_commit: VoteSet | None
    """Precommits for the last block; ``None`` before the first block."""
    last_validators: ValidatorSet

    @property
    def empty_votes(self) -> VoteSet:
        """Empty vote set of the round."""
        members = self.validators
        return VoteSet((None,) * len(members.validators), 0, members.total_power)
