"""Tests of precompiled contracts by known results; ``tox -e oracle`` compares them with
Ethereum's executable specification."""

from __future__ import annotations

import hashlib
from random import Random

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from flask_noderpc.ethereum.domain.forks import CANCUN, OSAKA, PRAGUE, Fork
from flask_noderpc.ethereum.engine import bn254
from flask_noderpc.ethereum.engine.precompiles import blake2b_in_python, precompiles
from flask_noderpc.protocol.secp256k1eth import ORDER, Key
from tests.oracle.precompiles import precompile_input

ECRECOVER, RIPEMD160, MODEXP, BLAKE2F, KZG, P256 = 1, 3, 5, 9, 10, 0x100


def run(number: int, data: bytes, fork: Fork = OSAKA) -> bytes:
    return precompiles(fork)[number.to_bytes(20)].run(data)


def gas(number: int, data: bytes, fork: Fork = OSAKA) -> int:
    return precompiles(fork)[number.to_bytes(20)].gas(data)


@pytest.mark.parametrize("number", [0x07, 0x08])
def test_without_zksnake_py_ecc_gives_the_same(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome(data: bytes) -> bytes | str:
        try:
            return run(number, data)
        except ValueError as error:
            return str(error)

    random = Random(number)
    inputs = [precompile_input(random, number) for _ in range(4)]
    expected = [outcome(data) for data in inputs]
    monkeypatch.setattr(bn254, "_library", bn254.PyEcc())

    assert [outcome(data) for data in inputs] == expected
    assert len(set(expected)) > 1


# A signature by the key 1, and values that no key has signed.
DIGEST = bytes(range(32))
SIGNER = Key((1).to_bytes(32))
PARITY, R, S = SIGNER.sign(DIGEST)


@pytest.mark.parametrize(
    ("v", "r", "s", "is_signer"),
    [
        (27 + PARITY, R, S, True),
        # A high S is valid, too.
        (28 - PARITY, R, ORDER - S, True),
        (28 - PARITY, R, S, False),
    ],
)
def test_the_signer_is_recovered(v: int, r: int, s: int, is_signer: bool) -> None:
    words = DIGEST + b"".join(number.to_bytes(32) for number in (v, r, s))
    found = run(ECRECOVER, words + b"ignored")
    assert (found == SIGNER.address.rjust(32, b"\0")) is is_signer
    assert len(found) == 32


@pytest.mark.parametrize(
    ("v", "r", "s"),
    [
        (26, R, S),
        (29, R, S),
        (27, 0, S),
        (27, ORDER, S),
        (27, R, 0),
        (27, R, ORDER),
        (27, 5, S),
        (27, 2**256 - 1, 2**256 - 1),
    ],
)
def test_values_that_no_key_has_signed_recover_nothing(v: int, r: int, s: int) -> None:
    assert run(ECRECOVER, DIGEST + b"".join(each.to_bytes(32) for each in (v, r, s))) == b""


def test_ripemd160_needs_no_openssl() -> None:
    # The first of the algorithm's own test vectors.
    digest = "9c1185a5c5e9fc54612808977ee8f548b2258d31"
    assert run(RIPEMD160, b"") == bytes.fromhex(digest).rjust(32, b"\0")


def modexp(base: bytes, exponent: bytes, modulus: bytes) -> bytes:
    lengths = (len(each).to_bytes(32) for each in (base, exponent, modulus))
    return b"".join((*lengths, base, exponent, modulus))


@pytest.mark.parametrize(
    ("fork", "size", "exponent", "cost"),
    [
        # EIP-2565: words * words * iterations / 3, at least 200.
        (PRAGUE, 32, 3, 200),
        (PRAGUE, 256, 3, 32 * 32 * 1 // 3),
        (PRAGUE, 256, 1 << 255, 32 * 32 * 255 // 3),
        # EIP-7883: 16 up to 32 bytes, then 2 * words * words; at least 500.
        (OSAKA, 32, 3, 500),
        (OSAKA, 32, 1 << 255, 16 * 255),
        (OSAKA, 33, 1 << 255, 2 * 5 * 5 * 255),
        (OSAKA, 256, 3, 2 * 32 * 32),
    ],
)
def test_gas_of_modexp_follows_the_fork(
    fork: Fork, size: int, exponent: int, cost: int
) -> None:
    data = modexp(b"\xff" * size, exponent.to_bytes(32), b"\xff" * size)
    assert gas(MODEXP, data, fork) == cost


@pytest.mark.parametrize("part", [0, 1, 2])
def test_osaka_limits_each_length_of_modexp(part: int) -> None:
    parts = [b"\3", b"\2", b"\7"]
    parts[part] = parts[part].rjust(1025, b"\0")
    data = modexp(*parts)
    assert int.from_bytes(run(MODEXP, data, PRAGUE)) == 2
    with pytest.raises(ValueError, match="length exceeded 1024 bytes"):
        run(MODEXP, data, OSAKA)
    parts[part] = parts[part][1:]
    assert int.from_bytes(run(MODEXP, modexp(*parts), OSAKA)) == 2


def signed_by_p256() -> bytes:
    from tests.oracle.precompiles import p256_signature

    return p256_signature(Random(1))


def test_p256_signatures_are_verified() -> None:
    data = signed_by_p256()
    assert run(P256, data) == (1).to_bytes(32)
    assert gas(P256, data) == 6_900
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    digest, r, s, x, y = (data[at : at + 32] for at in range(0, 160, 32))
    # A high S is valid here.
    high = (order - int.from_bytes(s)).to_bytes(32)
    assert run(P256, digest + r + high + x + y) == (1).to_bytes(32)
    for wrong in (
        data[:-1],
        data + b"\0",
        b"",
        bytes(32) + r + s + x + y,
        digest + bytes(32) + s + x + y,
        digest + r + bytes(32) + x + y,
        digest + order.to_bytes(32) + s + x + y,
        digest + r + s + bytes(64),
        digest + r + s + x + x,
        digest + r + s + b"\xff" * 64,
    ):
        assert run(P256, wrong) == b""


def test_contracts_of_later_forks_are_missing_before() -> None:
    assert P256.to_bytes(20) not in precompiles(PRAGUE)
    assert (0x11).to_bytes(20) not in precompiles(CANCUN)
    assert ec.SECP256R1().name == "secp256r1"


def test_rounds_of_blake2_in_python() -> None:
    # RFC 7693, appendix A: BLAKE2b of "abc" is one compression of twelve rounds.
    state = list(hashlib_iv())
    state[0] ^= 0x01010040
    words = [0x636261, *[0] * 15]
    found = blake2b_in_python(12, tuple(state), tuple(words), (3, 0), True)
    assert found == hashlib.blake2b(b"abc").digest()


def hashlib_iv() -> tuple[int, ...]:
    """Return the first 64 bits of the fractions of the roots of the first eight primes."""
    from math import isqrt

    primes = (2, 3, 5, 7, 11, 13, 17, 19)
    return tuple(isqrt(prime << 128) & ((1 << 64) - 1) for prime in primes)


# The commitment to the polynomial 0 is the point at infinity, and so is each proof of it.
INFINITY = b"\xc0" + bytes(47)


def kzg(commitment: bytes, point: int, value: int, proof: bytes) -> bytes:
    digest = b"\1" + hashlib.sha256(commitment).digest()[1:]
    return digest + point.to_bytes(32) + value.to_bytes(32) + commitment + proof


def test_a_proof_of_a_blob_s_value() -> None:
    modulus = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
    expected = (4096).to_bytes(32) + modulus.to_bytes(32)
    assert run(KZG, kzg(INFINITY, 5, 0, INFINITY)) == expected
    for wrong, text in (
        (kzg(INFINITY, 5, 1, INFINITY), "can't verify opening proof"),
        (kzg(INFINITY, modulus, 0, INFINITY), "can't verify opening proof"),
        (kzg(INFINITY, 5, modulus, INFINITY), "can't verify opening proof"),
        # Encodings of the point at infinity that are not allowed.
        (kzg(INFINITY, 5, 0, b"\xe0" + bytes(47)), "can't verify opening proof"),
        (kzg(INFINITY, 5, 0, INFINITY[:-1] + b"\1"), "can't verify opening proof"),
        (bytes(192), "mismatched versioned hash"),
        (kzg(INFINITY, 5, 0, INFINITY)[:-1], "invalid input length"),
    ):
        with pytest.raises(ValueError, match=text):
            run(KZG, wrong)
