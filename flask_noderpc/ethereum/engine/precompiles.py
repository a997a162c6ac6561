"""Precompiled contracts: gas and function of each, by name.

A function raises :exc:`ValueError` with the text of geth's core/vm/contracts.go for input that
the contract refuses.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from ...protocol import secp256k1eth
from ..domain.forks import Fork, ModexpGas
from . import bls12_381, bn254

Gas = Callable[[bytes], int]
Compute = Callable[[bytes], bytes]


class Precompile(NamedTuple):
    """A precompiled contract: its gas and its output as functions of the calldata."""

    gas: Gas
    run: Compute


def _linear(base: int, each: int = 0, size: int = 1) -> Gas:
    """Return a gas function: ``base``, plus ``each`` for every ``size`` complete bytes."""
    return lambda data: base + len(data) // size * each


def _of_words(base: int, word: int) -> Gas:
    return lambda data: base + (len(data) + 31) // 32 * word


def _ecrecover(data: bytes) -> bytes:
    """Return the signer's address, padded to a word; empty for an invalid signature."""
    digest, *words = (data[at : at + 32].ljust(32, b"\0") for at in range(0, 128, 32))
    v, r, s = map(int.from_bytes, words)
    if v not in (27, 28) or not (0 < r < secp256k1eth.ORDER and 0 < s < secp256k1eth.ORDER):
        return b""
    address = secp256k1eth.recover_address(digest, v - 27, r, s)
    return b"" if address is None else address.rjust(32, b"\0")


def _sha256(data: bytes) -> bytes:
    return sha256(data).digest()


def _ripemd160(data: bytes) -> bytes:
    # Few contracts call it, and its import takes a tenth of an executor's start.
    from Crypto.Hash import RIPEMD160

    return RIPEMD160.new(data).digest().rjust(32, b"\0")


# MODEXP: EIP-198.


def _lengths(data: bytes) -> tuple[int, int, int]:
    """Return the lengths of base, exponent and modulus in bytes."""
    head = data[:96].ljust(96, b"\0")
    base, exponent, modulus = (int.from_bytes(head[at : at + 32]) for at in (0, 32, 64))
    return base, exponent, modulus


def _number(data: bytes, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size].ljust(size, b"\0")) if size else 0


def _modexp_gas(data: bytes, rule: ModexpGas) -> int:
    base, exponent, modulus = _lengths(data)
    longest = max(base, modulus)
    complexity = rule.complexity * ((longest + 7) // 8) ** 2
    if rule.complexity_to_32_bytes is not None and longest <= 32:
        complexity = rule.complexity_to_32_bytes
    head = min(exponent, 32)
    bits = _number(data, 96 + base, head).bit_length()
    iterations = max(1, rule.iterations * (exponent - head) + max(bits - 1, 0))
    return max(rule.minimum, complexity * iterations // rule.divisor)


def _modexp(data: bytes, rule: ModexpGas) -> bytes:
    base, exponent, modulus = lengths = _lengths(data)
    if rule.max_length is not None and max(lengths) > rule.max_length:
        raise ValueError(
            f"one or more of base/exponent/modulus length exceeded {rule.max_length} bytes"
        )
    if not modulus:
        return b""
    divisor = _number(data, 96 + base + exponent, modulus)
    if not divisor:
        return bytes(modulus)
    power = pow(_number(data, 96, base), _number(data, 96 + base, exponent), divisor)
    return power.to_bytes(modulus)


# BLAKE2 F: EIP-152. Input: the number of rounds; state, message and offset as little-endian
# words; a flag for the final block.

_BLAKE2F = struct.Struct("<4s8Q16Q2QB")
_Words = tuple[int, ...]
_MASK = (1 << 64) - 1

# RFC 7693: the initial state, and the permutations of the message.
_IV = (
    0x6A09E667F3BCC908,
    0xBB67AE8584CAA73B,
    0x3C6EF372FE94F82B,
    0xA54FF53A5F1D36F1,
    0x510E527FADE682D1,
    0x9B05688C2B3E6C1F,
    0x1F83D9ABFB41BD6B,
    0x5BE0CD19137E2179,
)
_SIGMA = tuple(
    tuple(int(digit, 16) for digit in row)
    for row in (
        "0123456789abcdef",
        "ea489fd61c02b753",
        "b8c052fdae367194",
        "7931dcbe265a40f8",
        "905724afe1bc683d",
        "2c6a0b834d75fe19",
        "c51fed4a0763928b",
        "db7ec13950f4862a",
        "6fe9b308c2d714a5",
        "a2847615fb9e3cd0",
    )
)
# Indexes of the four words that each step mixes: columns, then diagonals.
_MIXED = tuple(
    tuple((column + turn * number) % 4 + 4 * number for number in range(4))
    for turn in (0, 1)
    for column in range(4)
)


def blake2b_in_python(
    rounds: int, state: _Words, message: _Words, offset: _Words, is_final: bool
) -> bytes:
    """Return the next state of BLAKE2b as 64 bytes, computed in pure Python."""
    v = [*state, *_IV]
    v[12] ^= offset[0]
    v[13] ^= offset[1]
    if is_final:
        v[14] ^= _MASK
    for number in range(rounds):
        order = _SIGMA[number % 10]
        for index, (a, b, c, d) in enumerate(_MIXED):
            for word, right, left in ((0, 32, 24), (1, 16, 63)):
                v[a] = v[a] + v[b] + message[order[2 * index + word]] & _MASK
                v[d] = _rotated(v[d] ^ v[a], right)
                v[c] = v[c] + v[d] & _MASK
                v[b] = _rotated(v[b] ^ v[c], left)
    return struct.pack("<8Q", *(h ^ v[i] ^ v[i + 8] for i, h in enumerate(state)))


def _rotated(word: int, bits: int) -> int:
    return word >> bits | word << 64 - bits & _MASK


# Prefer the compiled package: a block's gas allows millions of rounds, minutes in Python.
_blake2b = import_module("blake2b").compress if find_spec("blake2b") else blake2b_in_python


def _blake2f_gas(data: bytes) -> int:
    return int.from_bytes(data[:4]) if len(data) == _BLAKE2F.size else 0


def _blake2f(data: bytes) -> bytes:
    if len(data) != _BLAKE2F.size:
        raise ValueError(bls12_381.LENGTH)
    first, *words, final = _BLAKE2F.unpack(data)
    if final > 1:
        raise ValueError("invalid final flag")
    parts = tuple(words[:8]), tuple(words[8:24]), tuple(words[24:])
    return bytes(_blake2b(int.from_bytes(first), *parts, bool(final)))


# P256VERIFY: EIP-7951.

_P256 = ec.SECP256R1()
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_ECDSA = ec.ECDSA(Prehashed(SHA256()))


def _p256_verify(data: bytes) -> bytes:
    """Return the word 1 for a valid signature; empty for any other input."""
    if len(data) != 160:
        return b""
    r, s, x, y = (int.from_bytes(data[at : at + 32]) for at in range(32, 160, 32))
    if not (0 < r < _P256_ORDER and 0 < s < _P256_ORDER):
        return b""
    try:
        key = ec.EllipticCurvePublicNumbers(x, y, _P256).public_key()
        key.verify(encode_dss_signature(r, s), data[:32], _ECDSA)
    except (ValueError, InvalidSignature):
        return b""
    return (1).to_bytes(32)


# EIP-2537: price of each point in a multi-scalar multiplication, in thousandths of the full
# price, by the number of points. It falls as the number grows.


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


_G1_DISCOUNTS = _numbers(
    "1000 949 848 797 764 750 738 728 719 712 705 698 692 687 682 677 673 669 665 661 658 "
    "654 651 648 645 642 640 637 635 632 630 627 625 623 621 619 617 615 613 611 609 608 "
    "606 604 603 601 599 598 596 595 593 592 591 589 588 586 585 584 582 581 580 579 577 "
    "576 575 574 573 572 570 569 568 567 566 565 564 563 562 561 560 559 558 557 556 555 "
    "554 553 552 551 550 549 548 547 547 546 545 544 543 542 541 540 540 539 538 537 536 "
    "536 535 534 533 532 532 531 530 529 528 528 527 526 525 525 524 523 522 522 521 520 "
    "520 519"
)
_G2_DISCOUNTS = _numbers(
    "1000 1000 923 884 855 832 812 796 782 770 759 749 740 732 724 717 711 704 699 693 "
    "688 683 679 674 670 666 663 659 655 652 649 646 643 640 637 634 632 629 627 624 622 "
    "620 618 615 613 611 609 607 606 604 602 600 598 597 595 593 592 590 589 587 586 584 "
    "583 582 580 579 578 576 575 574 573 571 570 569 568 567 566 565 563 562 561 560 559 "
    "558 557 556 555 554 553 552 552 551 550 549 548 547 546 545 545 544 543 542 541 541 "
    "540 539 538 537 537 536 535 535 534 533 532 532 531 530 530 529 528 528 527 526 526 "
    "525 524 524"
)


def _msm_gas(one: int, discounts: Sequence[int], size: int) -> Gas:
    def gas(data: bytes) -> int:
        count = len(data) // size
        if not count:
            return 0
        return count * one * discounts[min(count, len(discounts)) - 1] // 1000

    return gas


_ALL: dict[str, Precompile] = {
    "ECREC": Precompile(_linear(3_000), _ecrecover),
    "SHA256": Precompile(_of_words(60, 12), _sha256),
    "RIPEMD160": Precompile(_of_words(600, 120), _ripemd160),
    "ID": Precompile(_of_words(15, 3), lambda data: data),
    # EIP-1108.
    "BN254_ADD": Precompile(_linear(150), bn254.add),
    "BN254_MUL": Precompile(_linear(6_000), bn254.multiply),
    "BN254_PAIRING": Precompile(_linear(45_000, 34_000, 192), bn254.pairing),
    "BLAKE2F": Precompile(_blake2f_gas, _blake2f),
    "KZG_POINT_EVALUATION": Precompile(_linear(50_000), bls12_381.evaluate_point),
    "BLS12_G1ADD": Precompile(_linear(375), bls12_381.g1_add),
    "BLS12_G1MSM": Precompile(_msm_gas(12_000, _G1_DISCOUNTS, 160), bls12_381.g1_msm),
    "BLS12_G2ADD": Precompile(_linear(600), bls12_381.g2_add),
    "BLS12_G2MSM": Precompile(_msm_gas(22_500, _G2_DISCOUNTS, 288), bls12_381.g2_msm),
    "BLS12_PAIRING_CHECK": Precompile(_linear(37_700, 32_600, 384), bls12_381.pairing),
    "BLS12_MAP_FP_TO_G1": Precompile(_linear(5_500), bls12_381.map_to_g1),
    "BLS12_MAP_FP2_TO_G2": Precompile(_linear(23_800), bls12_381.map_to_g2),
    "P256VERIFY": Precompile(_linear(6_900), _p256_verify),
}


@cache
def precompiles(fork: Fork) -> Mapping[bytes, Precompile]:
    """Return the precompiled contracts of a fork by address."""
    rule = fork.modexp
    modexp = Precompile(lambda data: _modexp_gas(data, rule), lambda data: _modexp(data, rule))
    named = {**_ALL, "MODEXP": modexp}
    return {number.to_bytes(20): named[name] for number, name in fork.precompiles.items()}
