"""Handlers of validators, consensus parameters, consensus state and evidence.

If the backend can't read a running consensus round, the results show the state of a node
between two blocks: the next height, round 0, step NewHeight.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..backends.base.backend import ChainBackend
from ..domain.block import BlockIDFlag, Commit, CommitSig, Evidence, RoundState, VoteSet
from ..domain.responses import (
    ResultBroadcastEvidence,
    ResultConsensusParams,
    ResultConsensusState,
    ResultDumpConsensusState,
    ResultValidators,
)
from ..domain.time import SECOND, ZERO_TIME
from ..domain.validator import ValidatorSet
from ..errors import EvidencePoolFull, InvalidEvidence, ValueNotAllowed
from ..jsoncodec import Raw
from ..jsonrpc.context import Context
from ..jsonrpc.params import NoParams, Params, param
from ..protocol.comet.keys import commit_vote
from ..protocol.comet.validate_basic import check_evidence_basics
from ..wire.comet.evidence import EvidenceObject
from ..wire.params import Int
from .blocks import AtHeight, page_slice, per_page, state_height


def consensus_state(ctx: Context, params: NoParams) -> ResultConsensusState | Raw:
    """Height, round, votes and proposer of the next block."""
    live = ctx.backend.network.live_round(ctx.settings.dialect, dump=False)
    return live or ResultConsensusState(_round_state(ctx))


def dump_consensus_state(ctx: Context, params: NoParams) -> ResultDumpConsensusState | Raw:
    """Complete consensus state, with the last precommits and two validator sets."""
    live = ctx.backend.network.live_round(ctx.settings.dialect, dump=True)
    return live or ResultDumpConsensusState(_round_state(ctx))


def _round_state(ctx: Context) -> RoundState:
    backend = ctx.backend
    latest = backend.reads.latest_height()
    if latest == 0:
        return _before_the_first(backend)
    commit, members = backend.reads.commit(latest), backend.reads.validators(latest)
    # Use the time of the last vote as the commit time: the exact time, when two thirds of the
    # power had voted, is not stored, and is not later.
    times = (sig.timestamp for sig in commit.signatures if not _is_absent(sig))
    # Fall back to the block's time, as a host application's backend may have commits without
    # signatures.
    decided = max(times, default=backend.reads.block_meta(latest).header.time)
    # CometBFT: the next round starts timeout_commit later; here this time is the block
    # interval.
    start = decided + round(ctx.settings.block_interval * SECOND)
    return RoundState(
        latest + 1,
        start,
        decided,
        backend.reads.validators(latest + 1),
        _votes(commit, members),
        members,
    )


def _before_the_first(backend: ChainBackend) -> RoundState:
    genesis = backend.reads.genesis()
    height = genesis.initial_height
    members = backend.reads.validators(height)
    return RoundState(height, genesis.genesis_time, ZERO_TIME, members, None, ValidatorSet())


def _votes(commit: Commit, members: ValidatorSet) -> VoteSet:
    votes = tuple(
        None if _is_absent(sig) else commit_vote(commit, index)
        for index, sig in enumerate(commit.signatures)
    ) or (None,) * len(members.validators)
    pairs = zip(votes, members.validators, strict=True)
    voted = sum(member.voting_power for vote, member in pairs if vote is not None)
    return VoteSet(votes, voted, members.total_power)


def _is_absent(sig: CommitSig) -> bool:
    return sig.block_id_flag == BlockIDFlag.ABSENT


@dataclass(frozen=True, slots=True)
class PageAtHeight(AtHeight):
    """Parameters of ``validators``."""

    page: int | None = param(Int(), default=None, doc="Page to return, counted from 1.")
    per_page: int | None = param(
        Int(), default=None, doc="Validators per page; by default 30, at most 100."
    )


def validators(ctx: Context, params: PageAtHeight) -> ResultValidators:
    """Validators at a height, in hashing order."""
    height = state_height(ctx.backend, params.height)
    members = ctx.backend.reads.validators(height).validators
    chosen = page_slice(len(members), params.page, per_page(params.per_page))
    return ResultValidators(height, members[chosen], len(members))


def consensus_params(ctx: Context, params: AtHeight) -> ResultConsensusParams:
    """Consensus parameters for the block at a height."""
    height = state_height(ctx.backend, params.height)
    return ResultConsensusParams(height, ctx.backend.reads.consensus_params(height))


@dataclass(frozen=True, slots=True)
class EvidenceParams(Params):
    """Parameters of ``broadcast_evidence``."""

    evidence: Evidence | None = param(
        EvidenceObject(),
        default=None,
        doc="The evidence: an object with a ``type`` and a ``value``.",
    )


def broadcast_evidence(ctx: Context, params: EvidenceParams) -> ResultBroadcastEvidence:
    """Submit a piece of evidence; return its hash.

    The response is the same if the evidence is already pending or in a block.
    """
    if params.evidence is None:
        raise ValueNotAllowed("no evidence was provided")
    # CometBFT: rpc/core/evidence.go, whose error text also contains the evidence; it is
    # omitted here, as the caller has sent it.
    try:
        check_evidence_basics(params.evidence)
    except ValueError as error:
        raise InvalidEvidence(f"evidence.ValidateBasic failed: {error}") from None
    try:
        return ResultBroadcastEvidence(ctx.backend.evidence.submit(params.evidence))
    except InvalidEvidence as error:
        raise InvalidEvidence(f"failed to add evidence: Invalid evidence: {error}") from None
    except EvidencePoolFull as error:
        raise InvalidEvidence(f"failed to add evidence: {error}") from None
