"""Tests of keys of each type, compared with CometBFT 0.40.0."""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.domain.block import BlockID, BlockIDFlag, Commit, CommitSig
from flask_noderpc.domain.validator import (
    BLS12_381,
    ED25519,
    ML_DSA_65,
    SECP256K1,
    SECP256K1ETH,
    PublicKey,
    ValidatorSet,
    ValidatorUpdate,
)
from flask_noderpc.installation import install_hint
from flask_noderpc.protocol.comet import hashes, messages, validators
from flask_noderpc.protocol.comet.chain_state import check_signatures
from flask_noderpc.protocol.comet.key_types import UnsupportedKey, address, verify
from flask_noderpc.wire.comet.v038 import COMET_038

CAPTURED = json.loads(
    (Path(__file__).parent.parent / "golden" / "keys_0.40.0.json").read_text()
)
KEYS = {each["type"]: each for each in CAPTURED["keys"]}
ALL = [ED25519, SECP256K1, BLS12_381, ML_DSA_65, SECP256K1ETH]
MESSAGE = b"message"


def key(kind: str) -> PublicKey:
    return PublicKey(kind, bytes.fromhex(KEYS[kind]["key"]))


def signature(kind: str) -> bytes:
    return bytes.fromhex(KEYS[kind]["signature"])


def verifiable(kind: str) -> str:
    """Skip the test if the library that verifies this type is missing."""
    if kind == BLS12_381:
        pytest.importorskip("py_arkworks_bls12381")
    if kind == SECP256K1ETH:
        pytest.importorskip("btclib_secp256k1")
        pytest.importorskip("eth_hash")
    if kind == ML_DSA_65:
        pytest.importorskip("cryptography.hazmat.primitives.asymmetric.mldsa")
    return kind


def test_each_type_that_was_captured_is_known() -> None:
    assert list(KEYS) == ALL


@pytest.mark.parametrize("kind", ALL)
def test_addresses_and_protobuf_are_those_of_cometbft(kind: str) -> None:
    if kind == SECP256K1ETH:
        verifiable(kind)

    assert address(key(kind)).hex() == KEYS[kind]["address"]
    assert messages.public_key(key(kind)).hex() == KEYS[kind]["proto"]


@pytest.mark.parametrize("kind", ALL)
def test_a_signature_is_verified(kind: str) -> None:
    verifiable(kind)

    assert verify(key(kind), signature(kind), MESSAGE)


@pytest.mark.parametrize("kind", ALL)
def test_another_message_was_not_signed(kind: str) -> None:
    verifiable(kind)

    assert not verify(key(kind), signature(kind), b"another")


@pytest.mark.parametrize("at", [0, 40, -1])
@pytest.mark.parametrize("kind", ALL)
def test_a_flipped_bit_makes_a_signature_wrong(kind: str, at: int) -> None:
    flipped = bytearray(signature(verifiable(kind)))
    flipped[at] ^= 1

    assert not verify(key(kind), bytes(flipped), MESSAGE)


@pytest.mark.parametrize("size", [0, 1, 64, 65, 96, 4000])
@pytest.mark.parametrize("kind", ALL)
def test_signatures_of_any_size_are_wrong_and_no_error(kind: str, size: int) -> None:
    assert not verify(key(verifiable(kind)), bytes(size), MESSAGE)


@pytest.mark.parametrize("kind", ALL)
def test_keys_that_are_none_verify_nothing(kind: str) -> None:
    verifiable(kind)
    none = PublicKey(kind, b"\xff" * len(key(kind).value))

    assert not verify(none, signature(kind), MESSAGE)
    assert not verify(PublicKey(kind, b"short"), signature(kind), MESSAGE)
    with pytest.raises(ValueError, match=f"got a {kind} key of 5 bytes"):
        address(PublicKey(kind, b"short"))


def test_a_bls_key_off_the_curve_verifies_nothing() -> None:
    value = bytearray(key(verifiable(BLS12_381)).value)
    value[-1] ^= 1

    assert not verify(PublicKey(BLS12_381, bytes(value)), signature(BLS12_381), MESSAGE)


def test_the_hash_of_a_mixed_set_is_that_of_cometbft() -> None:
    verifiable(SECP256K1ETH)
    members = ValidatorSet(
        validators.genesis_set(
            ValidatorUpdate(key(kind), 10 + at) for at, kind in enumerate(ALL)
        ).validators
    )

    assert hashes.validators_hash(members).hex() == CAPTURED["validators_hash"]


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Make imports of these packages fail."""
    whole = builtins.__import__

    def importing(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if any(part in name or part in (fromlist or ()) for part in names):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return whole(name, globals, locals, fromlist or (), level)

    monkeypatch.setattr(builtins, "__import__", importing)


@pytest.mark.parametrize(
    ("kind", "package", "cure"),
    [
        (BLS12_381, "py_arkworks_bls12381", install_hint("evm")),
        (SECP256K1ETH, "secp256k1eth", install_hint("evm")),
        (ML_DSA_65, "mldsa", "pip install -U cryptography"),
    ],
)
def test_a_missing_library_is_another_answer_than_a_wrong_signature(
    monkeypatch: pytest.MonkeyPatch, kind: str, package: str, cure: str
) -> None:
    without(monkeypatch, package)

    with pytest.raises(UnsupportedKey, match=re.escape(cure)):
        verify(key(kind), signature(kind), MESSAGE)


def test_a_type_that_nobody_knows_is_unsupported() -> None:
    unknown = PublicKey("falcon", bytes(32))

    with pytest.raises(UnsupportedKey, match="signatures of falcon keys can't be verified"):
        verify(unknown, bytes(64), MESSAGE)
    with pytest.raises(UnsupportedKey, match="keys of type 'falcon' is unknown"):
        messages.public_key(unknown)


def test_a_commit_tells_which_signatures_nobody_could_verify(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    members = validators.genesis_set([ValidatorUpdate(key(BLS12_381), 1)])
    (member,) = members.validators
    vote = CommitSig(BlockIDFlag.COMMIT, member.address, 0, signature(BLS12_381))
    commit = Commit(1, 0, BlockID(bytes(32)), (vote,))
    without(monkeypatch, "py_arkworks_bls12381")

    (reason,) = check_signatures("chain", commit, members)
    assert reason == f"bls12_381 keys need py_arkworks_bls12381: {install_hint('evm')}"


@pytest.mark.parametrize("kind", ALL)
def test_keys_are_shown_with_cometbfts_names(kind: str) -> None:
    update = ValidatorUpdate(key(kind), 5)
    results = BlockResults(1, validator_updates=(update,))

    answer: Any = json.loads(COMET_038.encode(results))
    shown = answer["validator_updates"][0]["pub_key"]["Sum"]

    assert shown["type"] == KEYS[kind]["sum"]
    assert list(shown["value"]) == [KEYS[kind]["member"]]
