"""Schemas in which CometBFT 0.37 differs from 0.38."""

from __future__ import annotations

from ...domain import abci
from ..fields import IntString, Text
from ..schema import ListOf, Nested, WireSchema
from .v038_shapes import (
    BareEvent,
    BroadcastCommit,
    ConsensusParamsUpdate,
    ExecTxResult,
    ValidatorUpdate,
)


class CheckTx(ExecTxResult):
    """The result of a check; CometBFT 0.37: abci/types/types.pb.go.

    The last three are fields of the priority mempool, which is not the default.
    """

    sender = Text(get=lambda _: "", dump_only=True)
    priority = IntString(get=lambda _: 0, dump_only=True)
    mempool_error = Text(data_key="mempoolError", get=lambda _: "", dump_only=True)


class CommitResult(BroadcastCommit):
    """Result of ``broadcast_tx_commit``; CometBFT 0.37: rpc/core/types/responses.go."""

    check_tx = Nested(CheckTx)
    tx_result = Nested(ExecTxResult, data_key="deliver_tx")


class BlockResults(WireSchema):
    """Result of ``block_results``; CometBFT 0.37: the events of a block's two ends."""

    domain = abci.BlockResults
    height = IntString()
    tx_results = ListOf(ExecTxResult, data_key="txs_results", null_when_empty=True)
    begin_block_events = ListOf(BareEvent, null_when_empty=True)
    end_block_events = ListOf(BareEvent, null_when_empty=True)
    validator_updates = ListOf(ValidatorUpdate, null_when_empty=True)
    consensus_param_updates = Nested(ConsensusParamsUpdate, nullable=True)
