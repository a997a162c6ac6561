"""Types of validator keys in CometBFT 0.34 to 1.0: names, addresses, signatures.

ed25519, secp256k1 and ml_dsa_65 need ``cryptography``; secp256k1eth and bls12_381 need the
packages of the extra ``evm``. Verifying a signature without the needed library raises
:exc:`UnsupportedKey`, as the signature may be valid.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from ...domain.validator import (
    BLS12_381,
    ED25519,
    ML_DSA_65,
    SECP256K1,
    SECP256K1ETH,
    PublicKey,
    ValidatorSet,
)
from ...errors import ConfigurationError, InvalidTransaction
from ...installation import install_hint


class UnsupportedKey(ValueError):
    """Error for a key type that no installed library supports."""


@dataclass(frozen=True, slots=True)
class KeyType:
    """Key type with CometBFT's names and rules."""

    member: int
    """Field number in protobuf's PublicKey."""
    member_name: str
    go_name: str
    """Name of the member's Go type."""
    json_name: str
    """Type name in CometBFT's JSON."""
    size: int
    """Size of a public key in bytes."""
    address: Callable[[bytes], bytes]
    verify: Callable[[bytes, bytes, bytes], bool]
    """Function of a public key, a signature and a message that returns True if the signature
    is valid."""


def are_known(members: ValidatorSet) -> bool:
    """Return True if all keys of the set have a known type, without which the set's hash can't
    be computed."""
    return {validator.pub_key.type for validator in members.validators} <= KEY_TYPES.keys()


def address(key: PublicKey) -> bytes:
    """Return the 20-byte address of a key.

    Raise :exc:`ValueError` for an unknown key type or a key of the wrong size, and
    :exc:`UnsupportedKey` if the library that computes the address is missing.
    """
    known = KEY_TYPES.get(key.type)
    if known is None or len(key.value) != known.size:
        raise ValueError(
            f"expected a key of a known type and size, got a {key.type} key of"
            f" {len(key.value)} bytes"
        )
    return known.address(key.value)


def verify(key: PublicKey, signature: bytes, message: bytes) -> bool:
    """Return True if the key signed the message; raise :exc:`UnsupportedKey` if no installed
    library can verify the signature."""
    known = KEY_TYPES.get(key.type)
    if known is None:
        raise UnsupportedKey(
            f"signatures of {key.type} keys can't be verified: unknown key type"
        )
    if len(key.value) != known.size:
        return False
    try:
        return known.verify(key.value, signature, message)
    except (InvalidSignature, ValueError) as error:
        if isinstance(error, UnsupportedKey):
            raise
        return False


def _of_sha256(key: bytes) -> bytes:
    return sha256(key).digest()[:20]


def _verify_ed25519(key: bytes, signature: bytes, message: bytes) -> bool:
    Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    return True


# Number of points on the curve secp256k1.
_SECP256K1_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def _secp256k1_address(key: bytes) -> bytes:
    # CometBFT: crypto/secp256k1/secp256k1.go computes the address as Bitcoin does.
    hashed = sha256(key).digest()
    try:
        return hashlib.new("ripemd160", hashed, usedforsecurity=False).digest()
    except ValueError:
        raise ConfigurationError(
            f"{SECP256K1} keys need RIPEMD-160, which {ssl.OPENSSL_VERSION} does not offer: "
            "use OpenSSL 3.0.7 or later, or activate the legacy provider in openssl.cnf"
        ) from None


def _verify_secp256k1(key: bytes, signature: bytes, message: bytes) -> bool:
    # CometBFT: a signature is R and S, 32 bytes each. S must be in the lower half, so that
    # no second valid signature can be derived.
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    if len(signature) != 64 or s > _SECP256K1_ORDER // 2:
        return False
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256K1(), key)
    public.verify(encode_dss_signature(r, s), message, ec.ECDSA(SHA256()))
    return True


# CometBFT 0.40: crypto/secp256k1eth/key.go uses Ethereum's addresses and signatures.


@contextmanager
def needing_extra(kind: str) -> Iterator[None]:
    """Raise :exc:`UnsupportedKey` if a library for keys of this type is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UnsupportedKey(f"{kind} keys need {error.name}: {install_hint('evm')}") from None


def _secp256k1eth_address(key: bytes) -> bytes:
    with needing_extra(SECP256K1ETH):
        from .. import secp256k1eth
    return secp256k1eth.address_of_compressed(key)


def _verify_secp256k1eth(key: bytes, signature: bytes, message: bytes) -> bool:
    with needing_extra(SECP256K1ETH):
        from .. import secp256k1eth
    if len(signature) != 65:
        return False
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:64])
    try:
        signer = secp256k1eth.recover_signer(secp256k1eth.keccak(message), signature[64], r, s)
    except InvalidTransaction:
        return False
    return signer == secp256k1eth.address_of_compressed(key)


def _verify_ml_dsa_65(key: bytes, signature: bytes, message: bytes) -> bool:
    # CometBFT 0.40: crypto/mldsa65/key.go, with an empty context.
    try:
        from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PublicKey

        public = MLDSA65PublicKey.from_public_bytes(key)
    except (ImportError, UnsupportedAlgorithm):
        raise UnsupportedKey(
            f"{ML_DSA_65} keys need a newer cryptography: pip install -U cryptography"
        ) from None
    public.verify(signature, message)
    return True


# CometBFT: crypto/bls12381/key_bls12381.go, as in Ethereum's consensus layer.
BLS_TAG = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_"
_BLS_SIGNATURE_BYTES = 96


def _verify_bls12_381(key: bytes, signature: bytes, message: bytes) -> bool:
    # CometBFT: keys are uncompressed points of G1 with 96 bytes, and signatures are compressed
    # points of G2. A key must not be the point at infinity.
    with needing_extra(BLS12_381):
        from py_arkworks_bls12381 import GT, G1Point, G2Point
    if len(signature) != _BLS_SIGNATURE_BYTES:
        return False
    public, signed = G1Point.from_xy_bytes_be(key), G2Point.from_compressed_bytes(signature)
    if public == G1Point.identity() or not public.is_in_subgroup():
        return False
    hashed = G2Point.hash_to_curve(message, BLS_TAG)
    is_signed: bool = GT.pairing_check([public, -G1Point()], [hashed, signed])
    return signed.is_in_subgroup() and is_signed


KEY_TYPES = {
    ED25519: KeyType(
        1, "ed25519", "Ed25519", "tendermint/PubKeyEd25519", 32, _of_sha256, _verify_ed25519
    ),
    SECP256K1: KeyType(
        2,
        "secp256k1",
        "Secp256K1",
        "tendermint/PubKeySecp256k1",
        33,
        _secp256k1_address,
        _verify_secp256k1,
    ),
    BLS12_381: KeyType(
        3,
        "bls12381",
        "Bls12381",
        "cometbft/PubKeyBls12_381",
        96,
        _of_sha256,
        _verify_bls12_381,
    ),
    ML_DSA_65: KeyType(
        4,
        "mldsa65",
        "Mldsa65",
        "cometbft/PubKeyMlDsa65",
        1952,
        _of_sha256,
        _verify_ml_dsa_65,
    ),
    SECP256K1ETH: KeyType(
        5,
        "secp256k1eth",
        "Secp256K1Eth",
        "tendermint/PubKeySecp256k1eth",
        33,
        _secp256k1eth_address,
        _verify_secp256k1eth,
    ),
}
"""Key types by their ABCI names."""

KEY_NAMES = {kind: known.json_name for kind, known in KEY_TYPES.items()}
"""Names of key types in CometBFT's JSON by their ABCI names."""
