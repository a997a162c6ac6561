"""Blocks on their way into a store."""

from __future__ import annotations

from dataclasses import dataclass, field

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
"""Fields that a chain may compute in its own way; all others link a block to its parts and to
its neighbours."""


def _check_unchecked(names: frozenset[str]) -> None:
    if others := names - MAY_BE_UNCHECKED:
        raise ValueError(
            f"unchecked: {', '.join(sorted(others))} must be checked; a chain's own may be"
            f" {', '.join(sorted(MAY_BE_UNCHECKED))}"
        )


@dataclass(frozen=True, slots=True)
class CommittedBlock:
    """A block on its way into a store."""

    block: Block
    commit: Commit
    """The precommits that finalised this block."""
    results: BlockResults
    changes: Changes = field(default_factory=dict)
    """Writes of the block to the application's state."""
    consumed: tuple[bytes, ...] = ()
    """Pending transactions that are in the block in another form, or are to be dropped."""
    unchecked: frozenset[str] = frozenset()
    """Fields that this chain computes in another way than CometBFT, such as ``data_hash``:
    they are stored, and marked as not verified. At most :data:`MAY_BE_UNCHECKED`."""
    source: str = ""
    """The node or file that it came from, for the operator."""

    def __post_init__(self) -> None:
        _check_unchecked(self.unchecked)


@dataclass(frozen=True, slots=True)
class BlockWithoutResults:
    """A block on its way into a store whose results no node returns."""

    block: Block
    commit: Commit
    """The precommits that finalised this block."""
    next_validators: ValidatorSet
    """The set of the height after the next one; results might have changed it."""
    params: ConsensusParams
    """The parameters in force at the next height."""
    unchecked: frozenset[str] = frozenset()
    """As of a :class:`CommittedBlock`."""
    source: str = ""
    results: None = field(default=None, init=False)

    def __post_init__(self) -> None:
        _check_unchecked(self.unchecked)


@dataclass(frozen=True, slots=True)
class OlderBlock:
    """A block on its way into a store, below its lowest block."""

    block: Block
    results: BlockResults | None = None
    """``None`` if every node has forgotten them."""
    validators: ValidatorSet | None = None
    """The set that signed it, with its priorities; required where it is not that of the
    following height, and useful at the lowest height of a range: priorities can only be
    computed upwards."""
    params: ConsensusParams | None = None
    """The parameters in force at it; needed below a height whose results changed them."""
    unchecked: frozenset[str] = frozenset()
    """As of a :class:`CommittedBlock`."""
    source: str = ""
    is_indexed: bool = True
    """False leaves its events out of the index."""

    def __post_init__(self) -> None:
        _check_unchecked(self.unchecked)
