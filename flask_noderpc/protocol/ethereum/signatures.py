"""Recovery of a transaction's sender from its signature."""

from __future__ import annotations

from ...domain.ethereum import Authorization
from ...errors import InvalidTransaction
from . import rlp
from .extra import of_the_extra
from .keccak import keccak

with of_the_extra():
    from coincurve import PublicKey

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

# EIP-7702: in front of what an account signs to let another's code act for it.
_AUTHORIZES = b"\x05"


def authority_of(given: Authorization) -> bytes | None:
    """EIP-7702: the account that lets another's code act for it; ``None`` for nobody."""
    signed = rlp.encode([given.chain_id, given.address, given.nonce])
    try:
        return signer(keccak(_AUTHORIZES + signed), given.y_parity, given.r, given.s)
    except InvalidTransaction:
        return None


def signer(digest: bytes, parity: int, r: int, s: int) -> bytes:
    """The address whose key signed a digest; raise :exc:`InvalidTransaction` for nobody's.

    EIP-2: S is in the lower half, so that nobody can make a second signature of one.
    """
    if parity not in (0, 1) or not 0 < r < ORDER or not 0 < s <= ORDER // 2:
        raise InvalidTransaction("invalid transaction v, r, s values")
    signature = r.to_bytes(32) + s.to_bytes(32) + bytes((parity,))
    try:
        key = PublicKey.from_signature_and_message(signature, digest, hasher=None)
    except ValueError:
        # Some R is no point of the curve.
        raise InvalidTransaction("recovery failed") from None
    return address_of(key)


def address_of(key: PublicKey) -> bytes:
    """The address of a key's account."""
    # It is of the two coordinates, without the mark in front of them.
    return keccak(key.format(compressed=False)[1:])[12:]
