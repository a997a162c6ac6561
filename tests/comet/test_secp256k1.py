"""Tests of addresses and signatures of secp256k1 keys, compared with CometBFT 0.38.25."""

from __future__ import annotations

import hashlib
import re
import ssl

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.domain.validator import SECP256K1, PublicKey
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.protocol.comet import key_types

# crypto/secp256k1: GenPrivKeySecp256k1([]byte("flask-noderpc")), its Sign([]byte("message")).
KEY = PublicKey(
    SECP256K1,
    bytes.fromhex("024b261ca6990b467f574c2f3364c16f8def372226b71b215e78e5ab4988aa1a0a"),
)
ADDRESS = "53534b89536ec179066b2e24c647a3bc3e8bdba6"
SIGNATURE = bytes.fromhex(
    "f91f3410dd16cb9fecbd8faaf16c537bb2d13ae39bb0a79114be3008448fa2cf"
    "44f3aa6dfbfe5a0f0f5c4589f17e4688f7eda3b2b4d0c912180bf9d3d249254c"
)
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def test_an_openssl_without_the_hash_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(name: str, data: bytes, *, usedforsecurity: bool) -> None:
        raise ValueError(f"unsupported hash type {name}")

    monkeypatch.setattr(hashlib, "new", lacking)

    wanted = f"which {re.escape(ssl.OPENSSL_VERSION)} does not offer: use OpenSSL 3.0.7"
    with pytest.raises(ConfigurationError, match=wanted):
        key_types.address(KEY)


def test_the_address_is_that_of_cometbft() -> None:
    assert key_types.address(KEY).hex() == ADDRESS


def test_a_signature_of_cometbft_verifies() -> None:
    assert key_types.verify(KEY, SIGNATURE, b"message")
    assert not key_types.verify(KEY, SIGNATURE, b"another")


def test_the_other_s_is_refused() -> None:
    other = ORDER - int.from_bytes(SIGNATURE[32:])

    assert not key_types.verify(KEY, SIGNATURE[:32] + other.to_bytes(32), b"message")


@pytest.mark.parametrize(
    ("key", "signature"),
    [
        (KEY.value, SIGNATURE[:63]),
        (KEY.value, SIGNATURE + b"\0"),
        (KEY.value, bytes(64)),
        (KEY.value[:32], SIGNATURE),
        (b"\x05" + KEY.value[1:], SIGNATURE),
        (b"\x02" + b"\xff" * 32, SIGNATURE),
    ],
)
def test_malformed_keys_and_signatures_do_not_verify(key: bytes, signature: bytes) -> None:
    assert not key_types.verify(PublicKey(SECP256K1, key), signature, b"message")


@given(st.integers(1, ORDER - 1), st.binary(max_size=100))
def test_only_the_signature_in_the_lower_half_verifies(secret: int, message: bytes) -> None:
    private = ec.derive_private_key(secret, ec.SECP256K1())
    point = private.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    r, s = decode_dss_signature(private.sign(message, ec.ECDSA(SHA256())))
    low = min(s, ORDER - s)

    key = PublicKey(SECP256K1, point)
    assert key_types.verify(key, r.to_bytes(32) + low.to_bytes(32), message)
    assert not key_types.verify(key, r.to_bytes(32) + (ORDER - low).to_bytes(32), message)
