"""Calldata that the precompiled contracts accept, and some that they refuse."""

from __future__ import annotations

from random import Random

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from eth_account import Account as EthAccount
from py_ecc.optimized_bls12_381.optimized_curve import G1, G2, multiply, normalize

# Length of each contract's input.
PRECOMPILE_SIZES = {
    1: 128,
    2: 70,
    3: 70,
    4: 33,
    5: 100,
    6: 128,
    7: 96,
    8: 192,
    9: 213,
    10: 192,
    11: 256,
    12: 160,
    13: 512,
    14: 288,
    15: 384,
    16: 64,
    17: 128,
    0x100: 160,
}
PRECOMPILES = tuple(number.to_bytes(20) for number in PRECOMPILE_SIZES)

# Points on alt_bn128's curves: in G1, and in G2 as EIP-197 encodes it.
_BN_G1 = (1).to_bytes(32) + (2).to_bytes(32)
_BN_MINUS_G1 = (1).to_bytes(32) + (
    21888242871839275222246405745257275088696311157297823662689037894645226208581
).to_bytes(32)
_BN_G2 = b"".join(
    number.to_bytes(32)
    for number in (
        11559732032986387107991004021392285783925812861821192530917403151452391805634,
        10857046999023057135944570762232829481370756359578518086990519993285655852781,
        4082367875863433681332203403145435568316851327593401208105741076214120093531,
        8495653923123431417604973247489272438418190587263600148770280649306958101930,
    )
)


def precompile_input(random: Random, number: int) -> bytes:
    """Return an input of a precompiled contract, sometimes with a fault."""
    made = p256_signature(random) if number == 0x100 else _valid(random, number)
    pick = random.random()
    if pick < 0.1:
        return made[: random.randrange(len(made))]
    if pick < 0.2:
        at = random.randrange(len(made))
        return made[:at] + random.randbytes(1) + made[at + 1 :]
    return made


def _valid(random: Random, number: int) -> bytes:
    scalar, many = random.getrandbits(random.choice((1, 8, 255))), random.randrange(1, 4)
    word = scalar.to_bytes(32)
    match number:
        case 1:
            digest = random.randbytes(32)
            made = EthAccount.unsafe_sign_hash(digest, b"\x07" * 32)
            return digest + b"".join(each.to_bytes(32) for each in (made.v, made.r, made.s))
        case 5:
            sizes = [random.choice((0, 1, 8, 31, 32, 33, 70)) for _ in range(3)]
            lengths = b"".join(size.to_bytes(32) for size in sizes)
            return lengths + random.randbytes(sum(sizes))
        case 6:
            return _BN_G1 + random.choice((_BN_G1, _BN_MINUS_G1, bytes(64)))
        case 7:
            return _BN_G1 + word
        case 8:
            return random.choice((_BN_G1, _BN_MINUS_G1)) + _BN_G2 + _BN_MINUS_G1 + _BN_G2
        case 9:
            return random.randrange(50).to_bytes(4) + random.randbytes(208) + b"\1"
        case 11:
            return _g1(1) + _g1(scalar % 5)
        case 12:
            return b"".join(_g1(n) + word for n in range(random.choice((many, 1, 128)) % 129))
        case 13:
            return _g2(1) + _g2(scalar % 5)
        case 14:
            return b"".join(_g2(n) + word for n in range(many))
        case 15:
            return _g1(1) + _g2(1) + _g1(-1 if random.random() < 0.5 else 2) + _g2(1)
        case 16 | 17:
            # One or two elements of the field.
            return (bytes(16) + b"\x12" + random.randbytes(47)) * (number - 15)
    return random.randbytes(PRECOMPILE_SIZES[number])


def p256_signature(random: Random) -> bytes:
    """Return a digest, a signature and its public key."""
    key, digest = (
        ec.derive_private_key(random.randrange(1, 1 << 200), _P256),
        random.randbytes(32),
    )
    r, s = decode_dss_signature(key.sign(digest, ec.ECDSA(Prehashed(SHA256()))))
    public = key.public_key().public_numbers()
    return digest + b"".join(each.to_bytes(32) for each in (r, s, public.x, public.y))


_P256 = ec.SECP256R1()


def _field(value: int) -> bytes:
    return value.to_bytes(64)


def _g1(times: int) -> bytes:
    """Return a point as in EIP-2537; zeros are the point at infinity."""
    if not times:
        return bytes(128)
    x, y = normalize(multiply(G1, times % _ORDER))
    return _field(int(x)) + _field(int(y))


def _g2(times: int) -> bytes:
    if not times:
        return bytes(256)
    point = normalize(multiply(G2, times % _ORDER))
    return b"".join(_field(int(each)) for own in point for each in own.coeffs)


_ORDER = 52435875175126190479447740508185965837690552500527637822603658699938581184513
