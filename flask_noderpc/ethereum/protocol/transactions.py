"""Encoding and decoding of signed transactions, and blob transactions with sidecars.

EIP-2718: a transaction is a list (legacy), or one byte with its type and a list.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any

from ...errors import InvalidTransaction
from ...protocol.secp256k1eth import Key, keccak, recover_signer
from ..domain.records import BLOB, LEGACY, EncodedTransaction, Transaction
from . import rlp
from .forms import FORMS, WORD

_FIRST_NO_TYPE = 0x80
# Maximum bytes of one list in a transaction; geth has this limit for a whole transaction
# (core/txpool/legacypool, txMaxSize). Decoding an element takes some microseconds, so a list
# of megabytes would block the process for a second.
_MAX_LIST_BYTES = 131_072


def decode(raw: bytes, *, unsigned: bool = False) -> Transaction:
    """Decode the canonical bytes of a transaction; compute its hash and recover its sender.

    Raise :exc:`InvalidTransaction` with geth's error text if the bytes or the signature are
    invalid. The chain ID and the rules of the block are not checked. ``unsigned`` also accepts
    the result of :func:`encode_unsigned`.
    """
    kind, body = _split_type(raw)
    try:
        values = _values(kind, body)
    except rlp.Malformed as error:
        raise InvalidTransaction(str(error)) from None
    digest, parity, chain_id = _signed(kind, body, values)
    if unsigned and values["s"] == 0 and 0 < values["r"].bit_length() <= 160:
        sender = values["r"].to_bytes(20)
    else:
        sender = recover_signer(digest, parity, values["r"], values["s"])
    _refuse_beyond_words(values)
    return Transaction(
        **{**values, "chain_id": chain_id}, type=kind, raw=raw, hash=keccak(raw), sender=sender
    )


def refuse_long_lists(raw: bytes) -> None:
    """Raise :exc:`InvalidTransaction` if a list in a transaction takes too long to decode.

    Malformed bytes pass, as :func:`decode` refuses them.
    """
    kind, body = _split_type(raw)
    with suppress(rlp.Malformed):
        items = rlp.Reader(body).list(FORMS[kind].geth)
        if kind == BLOB and not items.done and items.peek()[0]:
            items = items.list(FORMS[kind].geth)
        for field in FORMS[kind].fields:
            is_list, size = items.peek()
            if is_list and size > _MAX_LIST_BYTES:
                raise InvalidTransaction(
                    f"{field.geth}: expected a list of at most {_MAX_LIST_BYTES} bytes, got"
                    f" {size}; split the transaction"
                )
            items.encoded(field.geth)


def wrap_verified(raw: bytes) -> EncodedTransaction:
    """Return a committed transaction with its type and hash, without decoding or verifying it;
    raise :exc:`InvalidTransaction` for an unknown type."""
    kind, _ = _split_type(raw)
    return EncodedTransaction(kind, raw, keccak(raw))


def decoded(tx: Transaction | EncodedTransaction) -> Transaction:
    """Return a transaction with its fields; decode it unless that was done before."""
    return tx if isinstance(tx, Transaction) else decode(tx.raw, unsigned=True)


def encode(tx: Transaction) -> bytes:
    """Return the canonical bytes of a transaction, encoded from its fields."""
    fields = FORMS[tx.type].fields
    body = rlp.encode([field.item(getattr(tx, field.name)) for field in fields])
    return body if tx.type == LEGACY else bytes((tx.type,)) + body


def encode_unsigned(sender: bytes, tx: Transaction) -> bytes:
    """Return the bytes of a transaction that its sender has not signed, for test chains.

    Its S is 0, which no signature has, and its R is the sender's address.
    """
    return encode(replace(tx, v=_v(tx, 0), r=int.from_bytes(sender), s=0))


def signed(tx: Transaction, key: Key) -> bytes:
    """Return the canonical bytes of a transaction, signed with a key."""
    parity, r, s = key.sign(_digest(tx))
    return encode(replace(tx, v=_v(tx, parity), r=r, s=s))


def _digest(tx: Transaction) -> bytes:
    """Return the hash that the sender signs, which includes the chain ID."""
    items = [field.item(getattr(tx, field.name)) for field in FORMS[tx.type].fields[:-3]]
    if tx.type == LEGACY:
        return keccak(rlp.encode([*items, tx.chain_id or 0, 0, 0]))
    return keccak(bytes((tx.type,)) + rlp.encode(items))


def _v(tx: Transaction, parity: int) -> int:
    """Return V of a signature: its parity; in a legacy transaction also the chain ID
    (EIP-155)."""
    return parity if tx.type != LEGACY else 35 + 2 * (tx.chain_id or 0) + parity


def _split_type(raw: bytes) -> tuple[int, bytes]:
    """Return a transaction's type and the RLP of its fields."""
    if raw and raw[0] >= _FIRST_NO_TYPE:
        return LEGACY, raw
    if len(raw) < 2:
        raise InvalidTransaction("typed transaction too short")
    if raw[0] == LEGACY or raw[0] not in FORMS:
        raise InvalidTransaction("transaction type not supported")
    return raw[0], raw[1:]


def _values(kind: int, body: bytes) -> dict[str, Any]:
    if kind == BLOB and has_blobs(body):
        raise InvalidTransaction(
            "blob transaction: expected one without blobs, as in a block, got one with blobs;"
            " send it with eth_sendRawTransaction, which removes them"
        )
    form, reader = FORMS[kind], rlp.Reader(body)
    try:
        values = form.read(reader)
    except rlp.Malformed as error:
        raise (error.at(f"({form.geth})") if error.path else error) from None
    if not reader.done:
        raise rlp.Malformed("input contains more than one value")
    return dict(zip((field.name for field in form.fields), values, strict=True))


def has_blobs(body: bytes) -> bool:
    """Return true if a blob transaction includes its blobs, as it does until it is in a block
    (EIP-4844)."""
    items = rlp.Reader(body).list("types.BlobTx")
    return not items.done and items.peek()[0]


def _refuse_beyond_words(values: dict[str, Any]) -> None:
    """Raise :exc:`InvalidTransaction` for a number of more than 256 bits, which geth refuses
    after decoding."""
    for name, value in values.items():
        if isinstance(value, int) and value.bit_length() > 8 * WORD:
            raise InvalidTransaction(
                f"{name}: expected a number of at most 256 bits, got {value.bit_length()} bits"
            )


def _signed(kind: int, body: bytes, values: dict[str, Any]) -> tuple[bytes, int, int | None]:
    """Return the signing hash, the signature's parity, and the chain ID."""
    unsigned = _unsigned(body, values)
    v = values["v"]
    if kind != LEGACY:
        return keccak(bytes((kind,)) + rlp.encode_list(unsigned)), v, values["chain_id"]
    # EIP-155: V contains the chain ID, and the signed list ends with chain ID, 0 and 0. V of
    # an older signature is 27 or 28.
    if v < 35:
        return keccak(rlp.encode_list(unsigned)), v - 27, None
    chain_id, parity = divmod(v - 35, 2)
    signed = unsigned + rlp.encode(chain_id) + b"\x80\x80"
    return keccak(rlp.encode_list(signed)), parity, chain_id


def _unsigned(body: bytes, values: dict[str, Any]) -> bytes:
    """Return the encoded fields before the signature. The list has been decoded, so its
    encoding is canonical."""
    signature = sum(len(rlp.encode(values[name])) for name in "vrs")
    start = 1 if body[0] <= 0xF7 else body[0] - 0xF6
    return body[start : len(body) - signature]


_BLOB, _COMMITMENT, _PROOF = 1 << 17, 48, 48
# EIP-7594: a sidecar starts with version 1, and has a proof for each of a blob's 128 cells.
_CELLS, _VERSION = 128, 1
_HASH_VERSION = b"\x01"


def without_blobs(raw: bytes) -> bytes:
    """Return the canonical bytes of a transaction.

    A blob transaction must include its blobs, which are removed. Their commitments must match
    its versioned hashes; the proofs are not verified, as the blobs are not stored. Raise
    :exc:`~flask_noderpc.errors.InvalidTransaction`.
    """
    if raw[:1] != bytes((BLOB,)):
        return raw
    try:
        if not has_blobs(raw[1:]):
            raise InvalidTransaction("missing sidecar in blob transaction")
        outer = rlp.Reader(raw[1:])
        items = outer.list("types.blobTxWithBlobs")
        form = FORMS[BLOB]
        values = form.read(items)
        hashes = values[[field.name for field in form.fields].index("blob_versioned_hashes")]
        _check_sidecar(items, hashes)
        if not (items.done and outer.done):
            raise rlp.Malformed("input list has too many elements", "types.blobTxWithBlobs")
    except rlp.Malformed as error:
        raise InvalidTransaction(str(error)) from None
    fields = zip(form.fields, values, strict=True)
    return bytes((BLOB,)) + rlp.encode([field.item(value) for field, value in fields])


def _check_sidecar(items: rlp.Reader, hashes: tuple[bytes, ...]) -> None:
    proofs = 1
    if not items.peek()[0]:
        version = int.from_bytes(items.string("uint8"))
        if version != _VERSION:
            raise InvalidTransaction(
                f"invalid blob sidecar version {version}: expected {_VERSION}, or no version"
            )
        proofs = _CELLS
    _sized(items, _BLOB, len(hashes), "blobs")
    commitments = _sized(items, _COMMITMENT, len(hashes), "commitments")
    _sized(items, _PROOF, len(hashes) * proofs, "proofs")
    for index, (commitment, expected_hash) in enumerate(zip(commitments, hashes, strict=True)):
        if _HASH_VERSION + sha256(commitment).digest()[1:] != expected_hash:
            raise InvalidTransaction(
                f"blob {index}: expected a commitment that matches the transaction's versioned"
                " hash, got another; sign the transaction again for these blobs"
            )


def _sized(items: rlp.Reader, size: int, count: int, what: str) -> list[bytes]:
    inner, found = items.list(what), []
    while not inner.done:
        found.append(inner.string(what))
        if len(found[-1]) != size:
            raise InvalidTransaction(
                f"{what}: expected {size} bytes for each, got {len(found[-1])}"
            )
    if len(found) != count:
        raise InvalidTransaction(
            f"{what}: expected {count} for the transaction's versioned hashes, got {len(found)}"
        )
    return found
