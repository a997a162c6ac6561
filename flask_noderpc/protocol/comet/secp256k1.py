"""Verification of CometBFT's secp256k1 signatures."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256K1,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

KEY_SIZE = 33

_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def verify(key: bytes, signature: bytes, message: bytes) -> bool:
    """Return True if the compressed key signed the message.

    CometBFT: crypto/secp256k1/secp256k1.go. A signature is R and S, 32 bytes each, and S is
    in the lower half, so that nobody can make a second signature of one.
    """
    if len(signature) != 64 or len(key) != KEY_SIZE:
        return False
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    if s > _ORDER // 2:
        return False
    try:
        public = EllipticCurvePublicKey.from_encoded_point(SECP256K1(), key)
        public.verify(encode_dss_signature(r, s), message, ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True
