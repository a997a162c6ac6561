"""Consensus state between two blocks."""

from __future__ import annotations

from dataclasses import dataclass

from .block import Vote
from .validator import ValidatorSet


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
    """Time of the last commit; Go's zero time before the first."""
    validators: ValidatorSet
    """Validator set of the next height."""
    last_commit: VoteSet | None
    """The precommits for the last block; ``None`` before the first."""
    last_validators: ValidatorSet

    @property
    def no_votes(self) -> VoteSet:
        """Vote set of the round, with no votes yet."""
        members = self.validators
        return VoteSet((None,) * len(members.validators), 0, members.total_power)
