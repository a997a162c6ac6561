"""Event data of CometBFT 0.37, where it differs from 0.38.

CometBFT 0.37: types/events.go. A block's results have two parts, which both of its
messages contain, and its header has the keys of its events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...domain import events as event_data
from ...events.messages import Message, keys_of
from ..fields import IntString
from ..schema import ListOf, Nested, WireSchema
from .v038_shapes import (
    BareEvent,
    Block,
    ConsensusParamsUpdate,
    Evidence,
    Header,
    ValidatorUpdate,
)


class BeginBlock(WireSchema):
    """Results of BeginBlock."""

    events = ListOf(BareEvent, attribute="begin_block_events", omit_empty=True)


class EndBlock(WireSchema):
    """Results of EndBlock."""

    validator_updates = ListOf(ValidatorUpdate, null_when_empty=True)
    consensus_param_updates = Nested(ConsensusParamsUpdate, omit_empty=True)
    events = ListOf(BareEvent, attribute="end_block_events", omit_empty=True)


class NewBlock(WireSchema):
    """A block and its results."""

    block = Nested(Block, get=lambda event: event.answer.block)
    result_begin_block = Nested(BeginBlock, get=lambda event: event.results)
    result_end_block = Nested(EndBlock, get=lambda event: event.results)


class NewBlockHeader(WireSchema):
    """A header and its block's results."""

    header = Nested(Header)
    tx_count = IntString(data_key="num_txs")
    result_begin_block = Nested(BeginBlock, get=lambda event: event.results)
    result_end_block = Nested(EndBlock, get=lambda event: event.results)


class NewEvidence(WireSchema):
    """A piece of evidence."""

    evidence = Nested(Evidence)
    height = IntString()


def as_of_037(messages: Iterable[Message]) -> Iterator[Message]:
    """Return the messages of a block as 0.37 publishes them: types/event_bus.go."""
    for message in messages:
        match message.value:
            case event_data.NewBlockEvents():
                # New in CometBFT 0.38.
                pass
            case event_data.NewBlockHeader(results=results):
                keys = keys_of(results.begin_block_events + results.end_block_events)
                yield message._replace(keys={**message.keys, **keys})
            case _:
                yield message
