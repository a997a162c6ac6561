"""Rows of the store as domain values, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ... import jsoncodec
from ...domain.abci import BlockResults, Event, EventAttribute, ExecTxResult
from ...domain.block import (
    Block,
    BlockID,
    BlockMeta,
    Commit,
    CommitSig,
    DuplicateVoteEvidence,
    Evidence,
    Header,
    LightClientAttackEvidence,
    PartSetHeader,
    Version,
)
from ...domain.genesis import ConsensusParams, ConsensusParamsUpdate
from ...domain.search import TxResult
from ...domain.time import ZERO_TIME
from ...domain.validator import PublicKey, Validator, ValidatorUpdate

HEADER_COLUMNS = (
    "height, version_block, version_app, time, last_block_hash, last_parts_total,"
    " last_parts_hash, last_commit_hash, data_hash, validators_hash,"
    " next_validators_hash, consensus_hash, app_hash, last_results_hash,"
    " evidence_hash, proposer_address"
)
META_COLUMNS = f"hash, parts_total, parts_hash, size, tx_count, {HEADER_COLUMNS}"
RESULT_COLUMNS = "begin_events, end_events, validator_updates, param_updates, next_app_hash"
BLOCK_COLUMNS = f"{META_COLUMNS}, {RESULT_COLUMNS}"
TX_RESULT_COLUMNS = "code, data, log, info, gas_wanted, gas_used, codespace, events"


def placeholders(columns: str) -> str:
    """Return one question mark for each column."""
    return ", ".join("?" * (columns.count(",") + 1))


def header_row(header: Header) -> tuple[object, ...]:
    """The values of ``HEADER_COLUMNS``."""
    last = header.last_block_id
    return (
        header.height,
        header.version.block,
        header.version.app,
        header.time,
        last.hash,
        last.parts.total,
        last.parts.hash,
        header.last_commit_hash,
        header.data_hash,
        header.validators_hash,
        header.next_validators_hash,
        header.consensus_hash,
        header.app_hash,
        header.last_results_hash,
        header.evidence_hash,
        header.proposer_address,
    )


def header_from(row: Sequence[Any], chain_id: str) -> Header:
    """A header from the values of ``HEADER_COLUMNS``."""
    height, block, app, time, last_hash, last_total, last_parts, *hashes = row
    return Header(
        Version(block, app),
        chain_id,
        height,
        time,
        BlockID(last_hash, PartSetHeader(last_total, last_parts)),
        *hashes,
    )


def block_row(
    block_id: BlockID, size: int, block: Block, results: BlockResults
) -> tuple[object, ...]:
    """The values of ``BLOCK_COLUMNS``."""
    return (
        block_id.hash,
        block_id.parts.total,
        block_id.parts.hash,
        size,
        len(block.txs),
        *header_row(block.header),
        events_text(results.begin_block_events),
        events_text(results.end_block_events),
        jsoncodec.encode(results.validator_updates).decode(),
        jsoncodec.encode(results.consensus_param_updates).decode(),
        results.app_hash,
    )


def meta_from(row: Sequence[Any], chain_id: str) -> BlockMeta:
    """A block meta from the values of ``META_COLUMNS``."""
    block_hash, total, parts_hash, size, tx_count, *header = row
    block_id = BlockID(block_hash, PartSetHeader(total, parts_hash))
    return BlockMeta(block_id, size, header_from(header, chain_id), tx_count)


def results_from(
    height: int, row: Sequence[Any], tx_results: tuple[ExecTxResult, ...]
) -> BlockResults:
    """Block results from the values of ``RESULT_COLUMNS``."""
    begin, end, updates, params, app_hash = row
    return BlockResults(
        height,
        tx_results,
        events_from(begin),
        events_from(end),
        jsoncodec.decode(updates, tuple[ValidatorUpdate, ...]),
        jsoncodec.decode(params, ConsensusParamsUpdate | None),
        app_hash,
    )


def signature_row(height: int, position: int, sig: CommitSig) -> tuple[object, ...]:
    """One signature; the zero time is NULL, since it does not fit 64 bits."""
    time = None if sig.timestamp == ZERO_TIME else sig.timestamp
    return (height, position, sig.block_id_flag, sig.validator_address, time, sig.signature)


def commit_from(height: int, row: Sequence[Any], signatures: Iterable[Sequence[Any]]) -> Commit:
    """A commit from (round, hash, parts total, parts hash) and its signatures."""
    round_number, block_hash, total, parts_hash = row
    return Commit(
        height,
        round_number,
        BlockID(block_hash, PartSetHeader(total, parts_hash)),
        tuple(
            CommitSig(flag, address, ZERO_TIME if time is None else time, signature)
            for flag, address, time, signature in signatures
        ),
    )


def exec_tx_result_row(result: ExecTxResult) -> tuple[object, ...]:
    """The values of ``TX_RESULT_COLUMNS``."""
    return (
        result.code,
        result.data,
        result.log,
        result.info,
        result.gas_wanted,
        result.gas_used,
        result.codespace,
        events_text(result.events),
    )


def exec_tx_result_from(row: Sequence[Any]) -> ExecTxResult:
    """A result from the values of ``TX_RESULT_COLUMNS``."""
    code, data, log, info, gas_wanted, gas_used, codespace, events = row
    return ExecTxResult(
        code, data, log, info, gas_wanted, gas_used, events_from(events), codespace
    )


def tx_result_from(row: Sequence[Any]) -> TxResult:
    """A transaction from (height, position, tx) and the values of ``TX_RESULT_COLUMNS``."""
    height, position, tx, *result = row
    return TxResult(height, position, tx, exec_tx_result_from(result))


# Texts stand as they are, so that SQL can search them; other bytes stand in base64,
# in a list of one so that the two can't be taken for each other.
_Text = str | tuple[bytes]
_EventRow = tuple[str, tuple[tuple[_Text, _Text, bool], ...]]


def _text(value: bytes) -> _Text:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return (value,)


def _bytes(value: _Text) -> bytes:
    return value.encode() if isinstance(value, str) else value[0]


def events_text(events: tuple[Event, ...]) -> str:
    """Events as JSON: ``[[type, [[key, value, index], …]], …]``."""
    if not events:
        return "[]"
    rows = [
        (e.type, [(_text(a.key), _text(a.value), a.index) for a in e.attributes])
        for e in events
    ]
    return jsoncodec.encode(rows).decode()


def events_from(text: str) -> tuple[Event, ...]:
    """Events from their JSON."""
    if text == "[]":
        return ()
    return tuple(
        Event(
            kind,
            tuple(EventAttribute(_bytes(k), _bytes(v), index) for k, v, index in attributes),
        )
        for kind, attributes in jsoncodec.decode(text, tuple[_EventRow, ...])
    )


_KINDS: dict[str, type[Evidence]] = {
    "duplicate_vote": DuplicateVoteEvidence,
    "light_client_attack": LightClientAttackEvidence,
}
_KIND_NAMES = {kind: name for name, kind in _KINDS.items()}


def evidence_columns(item: Evidence) -> tuple[str, str]:
    """The kind of a piece of evidence, and its body as JSON."""
    return _KIND_NAMES[type(item)], jsoncodec.encode(item).decode()


def evidence_from(kind: str, body: str) -> Evidence:
    """Evidence from its kind and its JSON."""
    return jsoncodec.decode(body, _KINDS[kind])


def params_from(text: str) -> ConsensusParams:
    """Consensus parameters from their JSON."""
    return jsoncodec.decode(text, ConsensusParams)


def params_text(params: ConsensusParams) -> str:
    """Consensus parameters as JSON."""
    return jsoncodec.encode(params).decode()


def validator_from(row: Sequence[Any], priority: int) -> Validator:
    """A validator from (address, key type, key, power)."""
    address, key_type, key, power = row
    return Validator(address, PublicKey(key_type, key), power, priority)
