"""Headers, commits and evidence as rows."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .... import jsoncodec
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
from ....domain.time import SECOND
from ....protocol.comet.merkle import EMPTY_HASH
from .row import DamagedRow, opened, seal, with_form

_SIGNATURE_BYTES = 64
_ADDRESS_BYTES = 20
# Nanoseconds that fit 64 bits.
_EARLIEST, _LATEST = -(1 << 63), (1 << 63) - 1
# Hashes that stand for themselves: of no data, and of the same validators as before.
_EMPTY, _SAME = 0, 1
_VOTED = frozenset((BlockIDFlag.COMMIT, BlockIDFlag.NIL))
# Of a vote that is written out, as its fields are not those of most.
_WRITTEN_OUT = 0


# Blocks.


def pack_meta(meta: BlockMeta) -> bytes:
    """A header with its block's id, size and number of transactions."""
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
            # What is mostly the same takes a byte.
            [_EMPTY if each == EMPTY_HASH else each for each in hashes[:3]],
            _SAME if same_set else hashes[3],
            [_EMPTY if each == EMPTY_HASH else each for each in hashes[4:]],
            *with_form(meta.form),
        ),
        "header",
        header.height,
    )


def unpack_meta(row: bytes, at_height: int, chain_id: str) -> BlockMeta:
    """The inverse of :func:`pack_meta`; raise :exc:`DamagedRow`."""
    fields = opened(row, "header", at_height)
    own_id, size, tx_count, block, app, height, time, last_id, proposer, *others = fields
    if height != at_height:
        raise DamagedRow("header", at_height, f"it is that of height {height}")
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
    # Go's zero time has more nanoseconds than fit 64 bits.
    seconds, nanos = fields
    return seconds * SECOND + nanos


def _id_fields(value: BlockID) -> tuple[bytes, int, bytes]:
    return value.hash, value.parts.total, value.parts.hash


def _id_from(fields: Sequence[Any]) -> BlockID:
    digest, total, parts_hash = fields
    return BlockID(digest, PartSetHeader(total, parts_hash))


# Commits.


def pack_commit(commit: Commit, addresses: Sequence[bytes] = ()) -> bytes:
    """A commit by columns: some 69 bytes a vote.

    ``addresses`` are those of the set that signed it, of which the row has a checksum; without
    them it holds the addresses of its votes.
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
    """The inverse of :func:`pack_commit`; raise :exc:`DamagedRow`.

    ``known_addresses`` returns the same addresses again; it is called if they are not in
    the row.
    """
    fields = opened(row, "commit", height)
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
    # Votes mostly come within four seconds.
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
    """Name of a piece of evidence's kind."""
    return _KIND_NAMES[type(piece)]


def pack_evidence(piece: Evidence, height: int, key: int | bytes) -> bytes:
    """A piece of evidence, of a height and with what else is its key there."""
    return seal((evidence_kind(piece), jsoncodec.encode(piece)), "evidence", height, key)


def unpack_evidence(row: bytes, height: int, key: int | bytes) -> Evidence:
    """The inverse of :func:`pack_evidence`; raise :exc:`DamagedRow`."""
    kind, body = opened(row, "evidence", height, key)
    return jsoncodec.decode(body, _KINDS[kind])
