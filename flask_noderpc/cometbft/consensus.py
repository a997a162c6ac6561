"""State of consensus, derived from the latest commit.

A backend has no live round: the answers show the state that a node is in between two
blocks, at the height to come, in round 0, at the step NewHeight.
"""

from __future__ import annotations

from ..backends.base.backend import ChainBackend
from ..domain.block import BlockIDFlag, Commit, CommitSig, RoundState, VoteSet
from ..domain.rpc_results import ConsensusDump, ConsensusState
from ..domain.time import SECOND, ZERO_TIME
from ..domain.validator import ValidatorSet
from ..jsonrpc.context import Context
from ..jsonrpc.params import NoParams
from ..protocol.comet.keys import commit_vote


def consensus_state(ctx: Context, params: NoParams) -> ConsensusState:
    """Height, round, votes and proposer of the next block."""
    return ConsensusState(_round_state(ctx))


def dump_consensus_state(ctx: Context, params: NoParams) -> ConsensusDump:
    """Full consensus state, with the last precommits and two validator sets."""
    return ConsensusDump(_round_state(ctx))


def _round_state(ctx: Context) -> RoundState:
    backend = ctx.backend
    latest = backend.latest_height()
    if latest == 0:
        return _before_the_first(backend)
    commit, members = backend.commit(latest), backend.validators(latest)
    # The time when two thirds had voted is not stored; the last vote is no earlier.
    decided = max(sig.timestamp for sig in commit.signatures if not _is_absent(sig))
    # CometBFT: the next round starts timeout_commit later, which paces the blocks.
    start = decided + round(ctx.settings.block_interval * SECOND)
    return RoundState(
        latest + 1,
        start,
        decided,
        backend.validators(latest + 1),
        _votes(commit, members),
        members,
    )


def _before_the_first(backend: ChainBackend) -> RoundState:
    genesis = backend.genesis()
    height = genesis.initial_height
    members = backend.validators(height)
    return RoundState(height, genesis.genesis_time, ZERO_TIME, members, None, ValidatorSet())


def _votes(commit: Commit, members: ValidatorSet) -> VoteSet:
    votes = tuple(
        None if _is_absent(sig) else commit_vote(commit, index)
        for index, sig in enumerate(commit.signatures)
    )
    pairs = zip(votes, members.validators, strict=True)
    voted = sum(member.voting_power for vote, member in pairs if vote is not None)
    return VoteSet(votes, voted, members.total_power)


def _is_absent(sig: CommitSig) -> bool:
    return sig.block_id_flag == BlockIDFlag.ABSENT
