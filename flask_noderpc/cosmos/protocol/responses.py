"""Encoded responses of the SDK's services ``tx``, ``tendermint``, ``consensus`` and
``node``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...domain.abci import QueryResult
from ...domain.block import Block, BlockID, Header
from ...domain.genesis import ConsensusParams
from ...domain.network import NodeInfo
from ...domain.search import TxResult
from ...domain.time import SECOND, to_text
from ...domain.validator import Validator
from ...protocol.comet import hashes, messages
from ...protocol.protobuf import message
from . import bech32
from .proto import MESSAGES

TX_TYPE = "/cosmos.tx.v1beta1.Tx"

SDK_VERSION = "v0.53.8"
"""Version of the Cosmos SDK whose responses this module builds."""


@dataclass(frozen=True, slots=True)
class FoundTx:
    """A committed transaction, and the time of its block in nanoseconds since 1970."""

    record: TxResult
    time: int

    @property
    def hash(self) -> str:
        """Hash of the transaction, in upper-case hex."""
        return hashes.tx_hash(self.record.tx).hex().upper()

    @property
    def timestamp(self) -> str:
        """Time of the block as RFC 3339 text, without fractions of a second."""
        return to_text(self.time - self.time % SECOND)


def _tx_response(found: FoundTx) -> dict[str, Any]:
    """Return the field values of a TxResponse; ``logs`` is omitted, as in SDK 0.50 and
    later."""
    result = found.record.result
    return {
        "height": found.record.height,
        "txhash": found.hash,
        "codespace": result.codespace,
        "code": result.code,
        "data": result.data.hex().upper(),
        "raw_log": result.log,
        "info": result.info,
        "gas_wanted": result.gas_wanted,
        "gas_used": result.gas_used,
        # The value can be the TxRaw, as it is encoded like a Tx.
        "tx": {"type_url": TX_TYPE, "value": found.record.tx},
        "timestamp": found.timestamp,
        "events": result.events,
    }


def get_tx(found: FoundTx) -> bytes:
    """Encode a GetTxResponse."""
    response = _tx_response(found)
    return MESSAGES.encode("tx.GetTxResponse", tx=found.record.tx, tx_response=response)


def get_txs_event(found: Sequence[FoundTx], total: int) -> bytes:
    """Encode a GetTxsEventResponse, without ``pagination``."""
    return MESSAGES.encode(
        "tx.GetTxsEventResponse",
        txs=[each.record.tx for each in found],
        tx_responses=map(_tx_response, found),
        total=total,
    )


def get_block(block_id: BlockID, block: Block, prefix: str) -> bytes:
    """Encode a GetLatestBlockResponse."""
    encoded, header = _block(block), message(1, messages.header(block.header))
    own = message(1, _header(block.header, prefix)) + encoded[len(header) :]
    return MESSAGES.encode(
        "tendermint.GetLatestBlockResponse", block_id=block_id, block=encoded, sdk_block=own
    )


def get_block_with_txs(
    block_id: BlockID, block: Block, txs: Sequence[bytes], total: int
) -> bytes:
    """Encode a GetBlockWithTxsResponse."""
    return MESSAGES.encode(
        "tx.GetBlockWithTxsResponse",
        txs=txs,
        block_id=block_id,
        block=_block(block),
        pagination={"total": total},
    )


def _block(block: Block) -> bytes:
    return messages.block(block, plain_keys=hashes.has_plain_keys(block))


def proposer(header: Header, prefix: str) -> str:
    """Return a block proposer's address in bech32; empty if the header has no proposer."""
    if not header.proposer_address:
        return ""
    return bech32.encode(f"{prefix}valcons", header.proposer_address)


def _header(header: Header, prefix: str) -> bytes:
    """Encode a header with the proposer's address in bech32 instead of bytes."""
    shown = replace(header, proposer_address=proposer(header, prefix).encode())
    return messages.header(shown)


def validator_set(height: int, members: Sequence[Validator], total: int, prefix: str) -> bytes:
    """Encode a GetLatestValidatorSetResponse."""
    return MESSAGES.encode(
        "tendermint.GetLatestValidatorSetResponse",
        block_height=height,
        validators=[_validator(each, prefix) for each in members],
        pagination={"total": total},
    )


def _validator(member: Validator, prefix: str) -> dict[str, Any]:
    name = f"cosmos.crypto.{member.pub_key.type}.PubKey"
    key = MESSAGES.encode("cosmos.crypto.ed25519.PubKey", key=member.pub_key.value)
    return {
        "address": bech32.encode(f"{prefix}valcons", member.address),
        "pub_key": {"type_url": f"/{name}", "value": key},
        "voting_power": member.voting_power,
        "proposer_priority": member.proposer_priority,
    }


def abci_query(result: QueryResult) -> bytes:
    """Encode an ABCIQueryResponse, without proofs."""
    values = {**asdict(result), "proof_ops": None}
    return MESSAGES.encode("tendermint.ABCIQueryResponse", **values)


def node_info(info: NodeInfo, name: str, version: str) -> bytes:
    """Encode a GetNodeInfoResponse; ``name`` and ``version`` are the application's."""
    own = {
        "protocol_version": info.protocol_version,
        "default_node_id": info.id.hex(),
        "listen_addr": info.listen_addr,
        "network": info.network,
        "version": info.version,
        "channels": info.channels,
        "moniker": info.moniker,
        "other": info.other,
    }
    application = {
        "name": name,
        "app_name": name,
        "version": version,
        "cosmos_sdk_version": SDK_VERSION,
    }
    return MESSAGES.encode(
        "tendermint.GetNodeInfoResponse",
        default_node_info=own,
        application_version=application,
    )


def consensus_params(params: ConsensusParams) -> bytes:
    """Encode the message ConsensusParams."""
    return MESSAGES.encode(
        "ConsensusParams",
        block=params.block,
        evidence=params.evidence,
        validator=params.validator,
        version={"app": params.app_version},
        abci=params,
    )


def node_status(header: Header) -> bytes:
    """Encode a StatusResponse from the header of the latest block."""
    return MESSAGES.encode(
        "node.StatusResponse",
        height=header.height,
        timestamp=header.time,
        app_hash=header.app_hash,
        validator_hash=header.next_validators_hash,
    )
