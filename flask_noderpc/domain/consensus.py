"""Where consensus stands between two blocks."""

from __future__ import annotations

from dataclasses import dataclass

from .block import Vote
from .validator import ValidatorSet


@dataclass(frozen=True, slots=True)
class VoteSet:
    """The votes of one kind in one round, in set order; ``None`` of whoever did not vote."""

    votes: tuple[Vote | None, ...]
    voted_power: int
    total_power: int


@dataclass(frozen=True, slots=True)
class RoundState:
    """The height to come, in its round 0, before anybody proposed."""

    height: int
    start_time: int
    commit_time: int
    """When the last block was decided; Go's zero time before the first."""
    validators: ValidatorSet
    """The set that signs the height to come."""
    last_commit: VoteSet | None
    """The precommits for the last block; ``None`` before the first."""
    last_validators: ValidatorSet

    @property
    def no_votes(self) -> VoteSet:
        """The votes of the round so far."""
        members = self.validators
        return VoteSet((None,) * len(members.validators), 0, members.total_power)
