"""Event messages of a committed block, derived from the stored block in a fixed order.

The order is CometBFT 0.38's: messages of the consensus round, messages of the block, step to
the next height. The messages of the round are derived from the commit, whose precommits become
the Vote messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from ..backends.base.backend import ChainBackend
from ..backends.base.reads import ChainReads
from ..domain import events as event_data
from ..domain.abci import BlockResults, Event
from ..domain.block import Block, BlockIDFlag, Commit
from ..domain.responses import ResultBlock
from ..domain.validator import Validator
from ..errors import NotSupported
from ..event_aliases import with_aliases
from ..jsoncodec import text_of
from ..protocol.comet.hashes import tx_hash
from ..protocol.comet.key_types import address
from ..protocol.comet.keys import commit_vote
from .query import Query

# CometBFT's names of consensus steps.
_NEW_HEIGHT, _NEW_ROUND, _PROPOSE, _PREVOTE, _PRECOMMIT, _COMMIT = (
    "RoundStepNewHeight",
    "RoundStepNewRound",
    "RoundStepPropose",
    "RoundStepPrevote",
    "RoundStepPrecommit",
    "RoundStepCommit",
)

_DERIVED_EVENTS = frozenset(
    {
        "CompleteProposal",
        "Lock",
        "NewBlock",
        "NewBlockEvents",
        "NewBlockHeader",
        "NewEvidence",
        "NewRound",
        "NewRoundStep",
        "Polka",
        "Tx",
        "ValidBlock",
        "ValidatorSetUpdates",
        "Vote",
    }
)
NODE_EVENTS = frozenset({"Relock", "TimeoutPropose", "TimeoutWait", "Unlock"})
"""Categories of consensus events that can't be derived from a stored block."""

Keys = dict[str, list[str]]


class Message(NamedTuple):
    """Event message: its category, its data, and the keys that queries match."""

    height: int
    position: int
    """Index among the messages of its height, from 0; stable for a committed height."""
    category: str
    value: object
    keys: Keys


def check_events_available(backend: ChainBackend, query: Query) -> None:
    """Raise :exc:`~flask_noderpc.errors.NotSupported` for a query that matches only events that
    can't be derived from blocks.

    Only backends whose blocks come from other nodes, with rounds that may have failed, raise
    it.
    """
    conditions = [each for each in query.conditions if each.key == "tm.event"]
    if not conditions or backend.has_all_rounds():
        return
    wanted = {
        category
        for category in _DERIVED_EVENTS | NODE_EVENTS
        if all(each.holds(category) for each in conditions)
    }
    if wanted and wanted <= NODE_EVENTS:
        raise NotSupported(
            f"events of {', '.join(sorted(wanted))} are not available here: a companion reads"
            " blocks, which contain no timeouts and no failed rounds; subscribe at one of the"
            " nodes that it follows (NODERPC_UPSTREAM)"
        )


def messages_at(reads: ChainReads, height: int) -> Iterator[Message]:
    """Return the event messages of the block at a height.

    The chain is read at once; the messages are created during iteration.
    """
    drafts = chain(
        tuple(_round_messages(reads, height)),
        _block_messages(reads, height),
        _next_height_messages(height),
    )
    return (
        Message(height, position, category, value, {"tm.event": [category], **keys})
        for position, (category, value, keys) in enumerate(drafts)
        if value is not None
    )


_Draft = tuple[str, object | None, Keys]
"""Category, value and keys of a message; a draft without a value only reserves a position."""


def _round_messages(reads: ChainReads, height: int) -> Iterator[_Draft]:
    commit = reads.commit(height)
    number = commit.round
    proposer = reads.block_meta(height).header.proposer_address
    index, _ = reads.validators(height).by_address.get(proposer, (0, None))

    def at(step: str) -> event_data.RoundState:
        return event_data.RoundState(height, number, step)

    yield "NewRound", event_data.NewRound(height, number, _NEW_ROUND, proposer, index), {}
    yield "NewRoundStep", at(_PROPOSE), {}
    yield (
        "CompleteProposal",
        event_data.CompleteProposal(height, number, _PROPOSE, commit.block_id),
        {},
    )
    yield "NewRoundStep", at(_PREVOTE), {}
    yield "Polka", at(_PREVOTE), {}
    yield "ValidBlock", at(_PREVOTE), {}
    yield "Lock", at(_PREVOTE), {}
    yield "NewRoundStep", at(_PRECOMMIT), {}
    yield from _vote_messages(commit)
    yield "NewRoundStep", at(_COMMIT), {}


def _vote_messages(commit: Commit) -> Iterator[_Draft]:
    for index, sig in enumerate(commit.signatures):
        absent = sig.block_id_flag == BlockIDFlag.ABSENT
        # An absent vote reserves its position: the commit in the next block may contain the
        # vote, and the later positions must not change.
        yield "Vote", None if absent else event_data.VoteCast(commit_vote(commit, index)), {}


def _next_height_messages(height: int) -> Iterator[_Draft]:
    # CometBFT sends this step after the block's own events: consensus/state.go, updateToState.
    yield "NewRoundStep", event_data.RoundState(height + 1, 0, _NEW_HEIGHT), {}


def _block_messages(reads: ChainReads, height: int) -> Iterator[_Draft]:
    block_id, block = reads.block(height)
    byzantine_validators = tuple(reads.byzantine_validators(piece) for piece in block.evidence)
    results = reads.results(height)
    return _result_messages(ResultBlock(block_id, block, byzantine_validators), block, results)


def _result_messages(
    result_block: ResultBlock, block: Block, results: BlockResults
) -> Iterator[_Draft]:
    height = results.height
    block_events = results.begin_block_events + results.end_block_events
    block_keys = keys_of(block_events)
    yield "NewBlock", event_data.NewBlock(result_block, results), block_keys
    yield "NewBlockHeader", event_data.NewBlockHeader(block.header, len(block.txs), results), {}
    yield (
        "NewBlockEvents",
        event_data.NewBlockEvents(height, block_events, len(block.txs)),
        block_keys,
    )
    for piece, accused in zip(block.evidence, result_block.byzantine_validators, strict=True):
        yield "NewEvidence", event_data.NewEvidence(height, piece, accused), {}
    for index, (tx, result) in enumerate(zip(block.txs, results.tx_results, strict=True)):
        yield (
            "Tx",
            event_data.TxCommitted(height, index, tx, result),
            tx_keys(height, tx, result.events),
        )
    if results.validator_updates:
        changed = tuple(
            Validator(address(update.pub_key), update.pub_key, update.power)
            for update in results.validator_updates
        )
        yield "ValidatorSetUpdates", event_data.ValidatorSetUpdates(changed), {}


def tx_keys(height: int, tx: bytes, events: Sequence[Event]) -> Keys:
    """Return the keys of a transaction: its hash, its height, and the keys of its events.

    Events of an Ethereum transaction also have keys with their aliases.
    """
    keys = keys_of(with_aliases(events))
    keys["tx.hash"] = [tx_hash(tx).hex().upper()]
    keys["tx.height"] = [str(height)]
    return keys


def keys_of(events: Iterable[Event]) -> Keys:
    """Return the values of each ``type.key`` in the order in which the events have them."""
    keys: Keys = {}
    for event in events:
        if event.type:
            for attribute in event.attributes:
                name = f"{event.type}.{text_of(attribute.key)}"
                keys.setdefault(name, []).append(text_of(attribute.value))
    return keys
