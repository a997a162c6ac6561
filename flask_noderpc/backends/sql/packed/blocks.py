"""Packed rows: MessagePack after a CRC-32 that is checked on each read. Headers, commits,
evidence, results and transactions are packed here.

The checksum also covers the row's key, so that the row of another height is detected. A
flipped bit on the disk raises an error instead of becoming part of a response. Objects are
packed as lists of their fields, without names.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from .... import jsoncodec
from ....domain.abci import (
    BlockResults,
    Events,
    ExecTxResult,
    PackedEvents,
    pack_events,
    unpack_events,
)
from ....domain.block import (
    ABSENT,
    BlockID,
    BlockIDFlag,
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
from ....domain.genesis import ConsensusParamsUpdate
from ....domain.search import TxResult
from ....domain.time import SECOND
from ....domain.validator import PublicKey, ValidatorUpdate
from ....protocol.comet.hashes import EMPTY_HASH

Key = tuple[int, int | None]
T = TypeVar("T")

_CRC_BYTES = 4
# Bytes of a key that are shown in errors.
_SHOWN = 64


class DamagedRow(ValueError):
    """A packed row is damaged: its checksum or content is wrong, or it is missing."""

    def __init__(self, kind: str, height: int, cause: str) -> None:
        super().__init__(
            f"the {kind} of height {height} is damaged ({cause}): restore a backup"
        )


class DamagedValue(DamagedRow):
    """A row with a binary key is damaged: its checksum differs."""

    def __init__(self, table: str, key: bytes) -> None:
        shown = key[:_SHOWN].hex() + ("..." if len(key) > _SHOWN else "")
        ValueError.__init__(
            self,
            f"{table}: the row of key 0x{shown} is damaged (its checksum differs): restore a"
            " backup",
        )


def key_checksum(key: bytes, content: bytes) -> int:
    """Return the value for the column ``checksum`` of a row with a binary key."""
    return zlib.crc32(content, zlib.crc32(key))


def checked(table: str, key: bytes, content: bytes, checksum: int | None) -> bytes:
    """Return the content of a row with a binary key; raise :exc:`DamagedValue` if it does not
    match its checksum."""
    if checksum != zlib.crc32(content, zlib.crc32(key)):
        raise DamagedValue(table, key)
    return content


def seal(value: object, kind: str, height: int, *key: object) -> bytes:
    """Return a value as a packed row. The checksum also covers the kind, the height and the
    rest of the key."""
    return _with_checksum(jsoncodec.pack(value), _key_checksum(kind, height, *key))


def optional_form(form: bytes) -> tuple[bytes, ...]:
    """Return the form, which says how JSON is written, as optional last field of a packed row;
    nothing if it is empty."""
    return (form,) if form else ()


def unseal(row: bytes, kind: str, height: int, *key: object) -> Any:
    """Return the value of a packed row; raise :exc:`DamagedRow` if it was not sealed with this
    kind and key."""
    return _unpacked(jsoncodec.unpack, row, kind, height, *key)


def _unpacked(
    unpack: Callable[[memoryview], T], row: bytes, kind: str, height: int, *key: object
) -> T:
    body = _checked(row, kind, height, *key)
    try:
        return unpack(body)
    except ValueError as error:
        raise DamagedRow(kind, height, str(error)) from None


def reseal(row: bytes, kind: str, key: Key, new_key: Key) -> bytes:
    """Return a packed row with the checksum of another key."""
    body = bytes(_checked(row, kind, *key))
    return _with_checksum(body, _key_checksum(kind, *new_key))


def _checked(row: bytes, kind: str, height: int, *key: object) -> memoryview:
    if not isinstance(row, bytes):
        raise DamagedRow(kind, height, "it is missing")
    body = memoryview(row)[_CRC_BYTES:]
    expected = zlib.crc32(body, _key_checksum(kind, height, *key))
    if expected != int.from_bytes(row[:_CRC_BYTES]):
        raise DamagedRow(kind, height, "its checksum differs")
    return body


def _with_checksum(body: bytes, start: int) -> bytes:
    return zlib.crc32(body, start).to_bytes(_CRC_BYTES) + body


def _key_checksum(kind: str, height: int, *key: object) -> int:
    # Formatting an empty tuple takes as long as all the rest.
    return zlib.crc32(f"{kind} {height} {key or '()'}".encode())


_SIGNATURE_BYTES = 64
_ADDRESS_BYTES = 20
# Range of 64-bit nanoseconds.
_EARLIEST, _LATEST = -(1 << 63), (1 << 63) - 1
# Markers that replace common hashes: of empty data, and of the same validators as before.
_EMPTY, _SAME = 0, 1
_VOTED = frozenset((BlockIDFlag.COMMIT, BlockIDFlag.NIL))
# Flag of a vote whose fields are stored in full, because they do not have the usual sizes.
_WRITTEN_OUT = 0


# Blocks.


def pack_meta(meta: BlockMeta) -> bytes:
    """Pack a header with its block's ID, size and number of transactions."""
    header = meta.header
    hashes = (
        header.last_commit_hash,
        header.data_hash,
        header.validators_hash,
        header.next_validators_hash,
        header.consensus_hash,
        header.app_hash,
        header.last_results_hash,
        header.evidence_hash,
    )
    same_set = header.validators_hash == header.next_validators_hash
    return seal(
        (
            _id_fields(meta.block_id),
            meta.size,
            meta.tx_count,
            header.version.block,
            header.version.app,
            header.height,
            divmod(header.time, SECOND),
            _id_fields(header.last_block_id),
            header.proposer_address,
            # Replace common hashes by markers of one byte.
            [_EMPTY if each == EMPTY_HASH else each for each in hashes[:3]],
            _SAME if same_set else hashes[3],
            [_EMPTY if each == EMPTY_HASH else each for each in hashes[4:]],
            *optional_form(meta.form),
        ),
        "header",
        header.height,
    )


def unpack_meta(row: bytes, at_height: int, chain_id: str) -> BlockMeta:
    """Return the metadata that :func:`pack_meta` packed; raise :exc:`DamagedRow`."""
    fields = unseal(row, "header", at_height)
    own_id, size, tx_count, block, app, height, time, last_id, proposer, *others = fields
    if height != at_height:
        raise DamagedRow("header", at_height, f"it has height {height}")
    before, next_set, after, *form = others
    commit, data, own_set, *hashes = (
        EMPTY_HASH if each == _EMPTY else each for each in (*before, *after)
    )
    sets = own_set, own_set if next_set == _SAME else next_set
    version, time_ns = Version(block, app), _time_from(time)
    found = (commit, data, *sets, *hashes, proposer)
    header = Header(version, chain_id, height, time_ns, _id_from(last_id), *found)
    return BlockMeta(_id_from(own_id), size, header, tx_count, *form)


def _time_from(fields: Sequence[int]) -> int:
    # Seconds and nanoseconds are separate, as Go's zero time exceeds 64 bits of nanoseconds.
    seconds, nanos = fields
    return seconds * SECOND + nanos


def _id_fields(value: BlockID) -> tuple[bytes, int, bytes]:
    return value.hash, value.parts.total, value.parts.hash


def _id_from(fields: Sequence[Any]) -> BlockID:
    digest, total, parts_hash = fields
    return BlockID(digest, PartSetHeader(total, parts_hash))


# Commits.


def pack_commit(commit: Commit, addresses: Sequence[bytes] = ()) -> bytes:
    """Pack a commit by columns, in about 69 bytes per vote.

    ``addresses`` are the addresses of the validator set; the row only has their checksum. If
    the set is unknown, the row has the address of each vote.
    """
    signatures = commit.signatures
    known = len(addresses) == len(signatures)
    expected = addresses if known else [sig.validator_address for sig in signatures]
    written_out, regular = {}, []
    flags = bytearray()
    for index, (sig, address) in enumerate(zip(signatures, expected, strict=True)):
        if _is_regular(sig, address):
            flags.append(sig.block_id_flag)
            regular.append(sig)
        elif sig == ABSENT:
            flags.append(BlockIDFlag.ABSENT)
        else:
            flags.append(_WRITTEN_OUT)
            time = divmod(sig.timestamp, SECOND)
            fields = sig.block_id_flag, sig.validator_address, time, sig.signature
            written_out[index] = fields
    base = min((sig.timestamp for sig in regular), default=0)
    return seal(
        (
            commit.round,
            _id_fields(commit.block_id),
            bytes(flags),
            base,
            _pack_delays([sig.timestamp - base for sig in regular]),
            b"".join([sig.signature for sig in regular]),
            _checksum(addresses)
            if known
            else b"".join([sig.validator_address for sig in regular]),
            written_out,
        ),
        "commit",
        commit.height,
    )


def _is_regular(sig: CommitSig, address: bytes) -> bool:
    return (
        sig.block_id_flag in _VOTED
        and len(sig.signature) == _SIGNATURE_BYTES
        and len(address) == _ADDRESS_BYTES
        and sig.validator_address == address
        and _EARLIEST <= sig.timestamp <= _LATEST
    )


def unpack_commit(
    row: bytes, height: int, known_addresses: Callable[[], Sequence[bytes]]
) -> Commit:
    """Return the commit that :func:`pack_commit` packed; raise :exc:`DamagedRow`.

    ``known_addresses`` is a function that returns the addresses of the validator set; it is
    only called if the row does not contain addresses.
    """
    fields = unseal(row, "commit", height)
    round_, block_id, flags, base, delays, joined, own, written_out = fields
    addresses = _own_addresses(flags, own) if isinstance(own, bytes) else known_addresses()
    if len(addresses) != len(flags):
        raise DamagedRow("commit", height, f"{len(addresses)} validators, {len(flags)} votes")
    if isinstance(own, int) and own != _checksum(addresses):
        raise DamagedRow("commit", height, "the stored validators are not those that signed it")
    delay, signature = iter(_unpack_delays(delays)), _pieces(joined, _SIGNATURE_BYTES)
    found = []
    for index, (flag, address) in enumerate(zip(flags, addresses, strict=True)):
        if flag == BlockIDFlag.ABSENT:
            found.append(ABSENT)
        elif flag == _WRITTEN_OUT:
            kind, own_address, time, own_signature = written_out[index]
            found.append(CommitSig(kind, own_address, _time_from(time), own_signature))
        else:
            found.append(CommitSig(flag, address, base + next(delay), next(signature)))
    return Commit(height, round_, _id_from(block_id), tuple(found))


def _checksum(addresses: Sequence[bytes]) -> int:
    return zlib.crc32(b"".join(addresses))


def _pack_delays(delays: list[int]) -> bytes | list[int]:
    # The times of votes usually differ by less than four seconds, which fits 32 bits.
    if max(delays, default=0) >= 1 << 32:
        return delays
    return struct.pack(f"<{len(delays)}I", *delays)


def _unpack_delays(packed: bytes | list[int]) -> Sequence[int]:
    if isinstance(packed, list):
        return packed
    return struct.unpack(f"<{len(packed) // 4}I", packed)


def _own_addresses(flags: bytes, joined: bytes) -> list[bytes]:
    address = _pieces(joined, _ADDRESS_BYTES)
    others = (BlockIDFlag.ABSENT, _WRITTEN_OUT)
    return [b"" if flag in others else next(address) for flag in flags]


def _pieces(joined: bytes, size: int) -> Iterator[bytes]:
    return (joined[at : at + size] for at in range(0, len(joined), size))


# Evidence.

_KINDS: dict[str, type[Evidence]] = {
    "duplicate_vote": DuplicateVoteEvidence,
    "light_client_attack": LightClientAttackEvidence,
}
_KIND_NAMES = {kind: name for name, kind in _KINDS.items()}


def evidence_kind(piece: Evidence) -> str:
    """Return the name of the kind of a piece of evidence."""
    return _KIND_NAMES[type(piece)]


def pack_evidence(piece: Evidence, height: int, key: int | bytes) -> bytes:
    """Pack evidence; ``key`` is the part of the row's key besides the height."""
    return seal((evidence_kind(piece), jsoncodec.encode(piece)), "evidence", height, key)


def unpack_evidence(row: bytes, height: int, key: int | bytes) -> Evidence:
    """Return the evidence that :func:`pack_evidence` packed; raise :exc:`DamagedRow`."""
    kind, body = unseal(row, "evidence", height, key)
    return jsoncodec.decode(body, _KINDS[kind])


POSITION_BITS = 20
LAST_POSITION = (1 << POSITION_BITS) - 1
"""Highest position (index) of a transaction in its block. A place is an integer with the
position in its low 20 bits and the height above."""

_SLICE_BYTES = 64 << 10
_LARGE_BYTES = 1 << 20
"""Size of a block's packed results above which their events stay packed."""
# Position of the events among the fields of a transaction's result.
_EVENTS = 7


def pack_results(results: BlockResults) -> bytes:
    """Pack the results of a block, without the results of its transactions."""
    update = results.consensus_param_updates
    return seal(
        (
            pack_events(results.begin_block_events),
            pack_events(results.end_block_events),
            [(u.pub_key.type, u.pub_key.value, u.power) for u in results.validator_updates],
            None if update is None else jsoncodec.encode(update),
            results.app_hash,
            len(results.tx_results),
            *optional_form(results.form),
        ),
        "results",
        results.height,
    )


def unpack_results(
    row: bytes, height: int, of_txs: Callable[[int], tuple[ExecTxResult, ...]]
) -> BlockResults:
    """Return the results that :func:`pack_results` packed; raise :exc:`DamagedRow`.

    ``of_txs`` is a function that returns the results of the block's transactions, given their
    number.
    """
    begin, end, others = _result_fields(row, height)
    updates, params, app_hash, count, *form = map(jsoncodec.unpack, others)
    tx_results = of_txs(count)
    if len(tx_results) != count:
        raise DamagedRow(
            "transactions", height, f"only {len(tx_results)} of {count} are stored"
        )
    return BlockResults(
        height,
        tx_results,
        begin,
        end,
        tuple(ValidatorUpdate(PublicKey(kind, key), power) for kind, key, power in updates),
        None if params is None else jsoncodec.decode(params, ConsensusParamsUpdate),
        app_hash,
        *form,
    )


def unpack_block_events(row: bytes, height: int) -> Events:
    """Return a block's own events from the row of its results; raise :exc:`DamagedRow`."""
    begin, end, _ = _result_fields(row, height)
    return begin + end


def _result_fields(row: bytes, height: int) -> tuple[Events, Events, list[jsoncodec.Raw]]:
    begin, end, *others = _unpacked(jsoncodec.elements, row, "results", height)
    is_large = len(row) > _LARGE_BYTES
    return _events(begin, is_large), _events(end, is_large), others


def _events(packed: jsoncodec.Raw, is_large: bool) -> Events:
    """Return packed events, which stay packed in large results."""
    return PackedEvents(packed) if is_large else unpack_events(jsoncodec.unpack(packed))


# Transactions with their results.


def place(height: int, position: int = 0) -> int:
    """Return the place of a transaction: its height and its position, combined into one
    integer."""
    return height << POSITION_BITS | position


def slices(
    height: int,
    txs: Sequence[bytes],
    results: Sequence[ExecTxResult] | None,
    begin: int = 0,
) -> Iterator[tuple[int, bytes]]:
    """Yield packed rows of consecutive transactions, each with the place of its first
    transaction.

    A row has at most 64 KB, or one larger transaction; if ``results`` is ``None``, it has no
    results. ``begin`` is the position of the first transaction.
    """
    first, size = 0, 0
    packed: list[bytes] = []
    for position, tx in enumerate(txs):
        result = b"" if results is None else _pack_result(results[position])
        size += len(tx) + len(result)
        if size > _SLICE_BYTES and position > first:
            yield _slice(height, begin + first, txs[first:position], packed)
            first, size, packed = position, len(tx) + len(result), []
        packed.append(result)
    if txs:
        yield _slice(height, begin + first, txs[first:], packed)


def _slice(
    height: int, first: int, txs: Sequence[bytes], packed: Sequence[bytes]
) -> tuple[int, bytes]:
    return place(height, first), seal((txs, packed), "transactions", height, first)


class Slice:
    """A row of consecutive transactions of a block; results are decoded on access."""

    def __init__(self, row: bytes, first: int) -> None:
        self.height, self.first = first >> POSITION_BITS, first & LAST_POSITION
        self.size = len(row)
        self.txs, self._results = unseal(row, "transactions", self.height, self.first)

    def has(self, height: int, position: int) -> bool:
        """Return true if the slice contains the transaction at this height and position."""
        return self.height == height and 0 <= position - self.first < len(self.txs)

    def results(self, *, is_large: bool = False) -> list[ExecTxResult]:
        """Return the results of the transactions; an empty list if they are not stored. Events
        of a large block stay packed."""
        return [_unpack_result(packed, is_large=is_large) for packed in self._results if packed]

    def tx_result(self, position: int) -> TxResult:
        """Return the transaction at a position of the block; raise :exc:`DamagedRow`."""
        if not self.has(self.height, position):
            raise DamagedRow("transactions", self.height, f"number {position} is missing")
        at = position - self.first
        packed = self._results[at]
        result = _unpack_result(packed, is_large=len(packed) > _SLICE_BYTES)
        return TxResult(self.height, position, self.txs[at], result)


def all_results(parts: Sequence[Slice]) -> list[ExecTxResult]:
    """Return the results of a block's transactions."""
    is_large = sum(part.size for part in parts) > _LARGE_BYTES
    return [result for part in parts for result in part.results(is_large=is_large)]


def _pack_result(result: ExecTxResult) -> bytes:
    return jsoncodec.pack(
        (
            result.code,
            result.data,
            result.log,
            result.info,
            result.gas_wanted,
            result.gas_used,
            result.codespace,
            pack_events(result.events),
            *optional_form(result.form),
        )
    )


def _unpack_result(packed: bytes, *, is_large: bool) -> ExecTxResult:
    fields: list[Any] = (jsoncodec.elements if is_large else jsoncodec.unpack)(packed)
    found = fields.pop(_EVENTS)
    events = PackedEvents(found) if is_large else unpack_events(found)
    if is_large:
        fields = [jsoncodec.unpack(each) for each in fields]
    code, data, log, info, gas_wanted, gas_used, codespace, *form = fields
    return ExecTxResult(code, data, log, info, gas_wanted, gas_used, events, codespace, *form)
