"""Network encoding of blob transactions with their sidecars (EIP-4844, EIP-7594)."""

from __future__ import annotations

from hashlib import sha256

from ...domain.ethereum import BLOB
from ...errors import InvalidTransaction
from . import rlp
from .forms import FORMS
from .transactions import has_blobs

_BLOB, _COMMITMENT, _PROOF = 1 << 17, 48, 48
# EIP-7594: a proof for each cell of a blob, and a version in front of the blobs.
_CELLS, _VERSION = 128, 1
_HASH_VERSION = b"\x01"


def without_blobs(raw: bytes) -> bytes:
    """Return the canonical bytes of a transaction, without its blobs if it has them.

    The blobs' commitments must match the transaction's versioned hashes; the proofs are not
    verified, as the blobs are not stored. Raise
    :exc:`~flask_noderpc.errors.InvalidTransaction`.
    """
    if raw[:1] != bytes((BLOB,)):
        return raw
    try:
        if not has_blobs(raw[1:]):
            return raw
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
            raise InvalidTransaction(f"invalid blob sidecar version {version}")
        proofs = _CELLS
    _sized(items, _BLOB, len(hashes), "blobs")
    commitments = _sized(items, _COMMITMENT, len(hashes), "commitments")
    _sized(items, _PROOF, len(hashes) * proofs, "proofs")
    for place, (commitment, wanted) in enumerate(zip(commitments, hashes, strict=True)):
        if _HASH_VERSION + sha256(commitment).digest()[1:] != wanted:
            raise InvalidTransaction(f"blob {place}: the commitment is not of its hash")


def _sized(items: rlp.Reader, size: int, count: int, what: str) -> list[bytes]:
    inner, found = items.list(what), []
    while not inner.done:
        found.append(inner.string(what))
        if len(found[-1]) != size:
            raise InvalidTransaction(f"{what} of {size} bytes are needed")
    if len(found) != count:
        raise InvalidTransaction(f"invalid number of {len(found)} {what} for {count}")
    return found
