"""Responses of the SDK's services of transactions and of the node, as protobuf.

SDK: proto/cosmos/tx/v1beta1/service.proto, proto/cosmos/base/abci/v1beta1/abci.proto,
proto/cosmos/base/tendermint/v1beta1/query.proto.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...domain.abci import Event, QueryResult
from ...domain.block import Block, BlockID, Header
from ...domain.genesis import ConsensusParams
from ...domain.network import NodeInfo
from ...domain.search import TxResult
from ...domain.time import SECOND, to_text
from ...domain.validator import Validator
from ...protocol.comet import hashes, messages
from ...protocol.protobuf import blob, integer, message, string, timestamp
from . import bech32

TX_TYPE = "/cosmos.tx.v1beta1.Tx"

SDK_VERSION = "v0.53.8"
"""Version whose answers these are."""


@dataclass(frozen=True, slots=True)
class FoundTx:
    """A transaction in a block, and the block's time."""

    record: TxResult
    time: int

    @property
    def hash(self) -> str:
        """The transaction's hash, in upper-case hex."""
        return hashes.tx_hash(self.record.tx).hex().upper()

    @property
    def timestamp(self) -> str:
        """The block's time, without its fraction of a second."""
        return to_text(self.time - self.time % SECOND)


def event(given: Event, *, with_index: bool = True) -> bytes:
    """Event{1 type, 2* attributes}, each {1 key, 2 value, 3 index}."""
    attributes = b"".join(
        message(
            2,
            blob(1, each.key) + blob(2, each.value) + integer(3, each.index and with_index),
        )
        for each in given.attributes
    )
    return string(1, given.type) + attributes


def tx_response(found: FoundTx) -> bytes:
    """TxResponse{1 height .. 13* events}; ``logs`` are empty, as since 0.50."""
    result = found.record.result
    # A TxRaw has the fields of a Tx.
    any_tx = string(1, TX_TYPE) + blob(2, found.record.tx)
    return (
        integer(1, found.record.height)
        + string(2, found.hash)
        + string(3, result.codespace)
        + integer(4, result.code)
        + string(5, result.data.hex().upper())
        + string(6, result.log)
        + string(8, result.info)
        + integer(9, result.gas_wanted)
        + integer(10, result.gas_used)
        + message(11, any_tx)
        + string(12, found.timestamp)
        + b"".join(message(13, event(each)) for each in result.events)
    )


def get_tx(found: FoundTx) -> bytes:
    """GetTxResponse{1 tx, 2 tx_response}."""
    return message(1, found.record.tx) + message(2, tx_response(found))


def get_txs_event(found: Sequence[FoundTx], total: int) -> bytes:
    """GetTxsEventResponse{1* txs, 2* tx_responses, 4 total}."""
    return (
        b"".join(message(1, each.record.tx) for each in found)
        + b"".join(message(2, tx_response(each)) for each in found)
        + integer(4, total)
    )


def get_block(block_id: BlockID, block: Block, prefix: str) -> bytes:
    """GetLatestBlockResponse{1 block_id, 2 block, 3 sdk_block}."""
    encoded = _block(block)
    header = message(1, messages.header(block.header))
    own = message(1, _header(block.header, prefix)) + encoded[len(header) :]
    return message(1, messages.block_id(block_id)) + message(2, encoded) + message(3, own)


def get_block_with_txs(
    block_id: BlockID, block: Block, txs: Sequence[bytes], total: int
) -> bytes:
    """GetBlockWithTxsResponse{1* txs, 2 block_id, 3 block, 4 pagination}."""
    return (
        b"".join(message(1, tx) for tx in txs)
        + message(2, messages.block_id(block_id))
        + message(3, _block(block))
        + message(4, integer(2, total))
    )


def _block(block: Block) -> bytes:
    return messages.block(block, plain_keys=hashes.has_plain_keys(block))


def proposer(header: Header, prefix: str) -> str:
    """Return the address of a block's proposer as the SDK shows it."""
    if not header.proposer_address:
        return ""
    return bech32.encode(f"{prefix}valcons", header.proposer_address)


def _header(header: Header, prefix: str) -> bytes:
    """The same header, whose proposer is a text."""
    encoded = messages.header(header)
    known = blob(14, header.proposer_address)
    return encoded[: len(encoded) - len(known)] + string(14, proposer(header, prefix))


def validator_set(height: int, members: Sequence[Validator], total: int, prefix: str) -> bytes:
    """GetLatestValidatorSetResponse{1 block_height, 2* validators, 3 pagination}."""
    return (
        integer(1, height)
        + b"".join(message(2, _validator(each, prefix)) for each in members)
        + message(3, integer(2, total))
    )


def _validator(member: Validator, prefix: str) -> bytes:
    """Validator{1 address, 2 pub_key, 3 voting_power, 4 proposer_priority}."""
    key = string(1, f"/cosmos.crypto.{member.pub_key.type}.PubKey")
    return (
        string(1, bech32.encode(f"{prefix}valcons", member.address))
        + message(2, key + blob(2, blob(1, member.pub_key.value)))
        + integer(3, member.voting_power)
        + integer(4, member.proposer_priority)
    )


def abci_query(result: QueryResult) -> bytes:
    """ABCIQueryResponse{1 code .. 7 value, 9 height, 10 codespace}, without proofs."""
    return (
        integer(1, result.code)
        + string(3, result.log)
        + string(4, result.info)
        + integer(5, result.index)
        + blob(6, result.key or b"")
        + blob(7, result.value)
        + integer(9, result.height)
        + string(10, result.codespace)
    )


def node_info(info: NodeInfo, name: str, version: str) -> bytes:
    """GetNodeInfoResponse{1 default_node_info, 2 application_version}, of an application of
    this name in a program of this version."""
    protocol = info.protocol_version
    own = (
        message(
            1, integer(1, protocol.p2p) + integer(2, protocol.block) + integer(3, protocol.app)
        )
        + string(2, info.id.hex())
        + string(3, info.listen_addr)
        + string(4, info.network)
        + string(5, info.version)
        + blob(6, info.channels)
        + string(7, info.moniker)
        + message(8, string(1, info.other.tx_index) + string(2, info.other.rpc_address))
    )
    application = (
        string(1, name) + string(2, name) + string(3, version) + string(8, SDK_VERSION)
    )
    return message(1, own) + message(2, application)


def consensus_params(params: ConsensusParams) -> bytes:
    """ConsensusParams{1 block, 2 evidence, 3 validator, 4 version, 5 abci}."""
    block = integer(1, params.block.max_bytes) + integer(2, params.block.max_gas)
    evidence = (
        integer(1, params.evidence.max_age_num_blocks)
        # A Duration has the fields of a Timestamp.
        + message(2, timestamp(params.evidence.max_age_duration))
        + integer(3, params.evidence.max_bytes)
    )
    keys = b"".join(string(1, each) for each in params.validator.pub_key_types)
    version = integer(1, params.app_version)
    extensions = integer(1, params.vote_extensions_enable_height)
    parts = (block, evidence, keys, version, extensions)
    return b"".join(message(number, part) for number, part in enumerate(parts, 1))


def node_status(header: Header) -> bytes:
    """StatusResponse{2 height, 3 timestamp, 4 app_hash, 5 validator_hash}."""
    return (
        integer(2, header.height)
        + message(3, timestamp(header.time))
        + blob(4, header.app_hash)
        + blob(5, header.next_validators_hash)
    )
