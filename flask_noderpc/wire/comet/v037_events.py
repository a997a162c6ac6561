"""What subscribers read of a CometBFT 0.37 node, where 0.38 differs.

CometBFT 0.37: types/events.go. A block's results stand in two parts, which both of its
messages have, and its header comes with the keys of its events.
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
    """What beginning a block gave."""

    events = ListOf(BareEvent, attribute="begin_block_events", omit_empty=True)


class EndBlock(WireSchema):
    """What ending a block gave."""

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
    """A block's messages; CometBFT 0.37: types/event_bus.go, of the header."""
    for message in messages:
        match message.value:
            case event_data.NewBlockEvents():
                # CometBFT 0.38 has brought these.
                pass
            case event_data.NewBlockHeader(results=results):
                keys = keys_of(results.begin_block_events + results.end_block_events)
                yield message._replace(keys={**message.keys, **keys})
            case _:
                yield message
