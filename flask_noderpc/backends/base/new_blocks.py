"""Blocks that are about to be stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...domain.abci import BlockResults
from ...domain.block import Block, Commit
from ...domain.genesis import ConsensusParams
from ...domain.validator import ValidatorSet
from .application import Changes

MAY_BE_UNCHECKED = frozenset(
    {
        "app_hash",
        "consensus_hash",
        "data_hash",
        "evidence_hash",
        "last_commit_hash",
        "last_results_hash",
        "next_validators_hash",
        "results",
        "results.app_hash",
        "time",
        "validators_hash",
        "version.block",
    }
)
"""Fields that a chain may compute in its own way. All other fields must be CometBFT's, because
they link a block to its content and to its neighbours."""


def _check_unchecked(names: frozenset[str]) -> None:
    if others := names - MAY_BE_UNCHECKED:
        raise ValueError(
            f"unchecked: expected some of {', '.join(sorted(MAY_BE_UNCHECKED))}; got"
            f" {', '.join(sorted(others))}"
        )


@dataclass(frozen=True, slots=True)
class CommittedBlock:
    """A block with results that is about to be stored."""

    block: Block
    commit: Commit
    """Commit that finalised this block."""
    results: BlockResults
    changes: Changes = field(default_factory=dict)
    """Writes of the block to the application's state."""
    consumed: tuple[bytes, ...] = ()
    """Further pending transactions to remove from the mempool: the block contains them in
    another encoding, or the application dropped them."""
    unchecked: frozenset[str] = frozenset()
    """Fields that this chain computes differently from CometBFT, such as ``data_hash``; they
    are stored and marked as not verified. Must be a subset of :data:`MAY_BE_UNCHECKED`."""
    source: str = ""
    """Node or file that the block came from, shown to operators."""
    precomputed: Any = field(default=None, repr=False, compare=False)
    """Hashes, rows and index entries of the block, if another process has computed them for a
    SQL store; the results then lack the events of transactions."""

    def __post_init__(self) -> None:
        _check_unchecked(self.unchecked)


@dataclass(frozen=True, slots=True)
class BlockWithoutResults:
    """A block that is about to be stored and whose results no node returns."""

    block: Block
    commit: Commit
    """Commit that finalised this block."""
    next_validators: ValidatorSet
    """Validator set of the height after the next one, which the missing results might have
    changed."""
    params: ConsensusParams
    """Consensus parameters in force at the next height."""
    unchecked: frozenset[str] = frozenset()
    """Unchecked fields; see :class:`CommittedBlock`."""
    source: str = ""
    results: None = field(default=None, init=False)
    precomputed: None = field(default=None, init=False)

    def __post_init__(self) -> None:
        _check_unchecked(self.unchecked)


@dataclass(frozen=True, slots=True)
class OlderBlock:
    """A block that is about to be stored below the store's lowest block."""

    block: Block
    results: BlockResults | None = None
    """Results of the block; ``None`` if every node has pruned them."""
    validators: ValidatorSet | None = None
    """Validator set that signed the block, with its priorities; required if it differs from
    the set of the following height. At the lowest height of a range it is useful, because
    priorities can only be computed upwards."""
    params: ConsensusParams | None = None
    """Consensus parameters in force at this height; required if the block's results changed
    them."""
    unchecked: frozenset[str] = frozenset()
    """Unchecked fields; see :class:`CommittedBlock`."""
    source: str = ""
    is_indexed: bool = True
    """True if the block's events are to be indexed."""
    precomputed: Any = field(default=None, repr=False, compare=False)
    """Rows of the block; see :class:`CommittedBlock`."""

    def __post_init__(self) -> None:
        _check_unchecked(self.unchecked)
