"""Tests of keys, addresses and vote signatures."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.domain.block import (
    ABSENT,
    NO_BLOCK,
    BlockID,
    BlockIDFlag,
    Commit,
    CommitSig,
    PartSetHeader,
    Vote,
    VoteType,
)
from flask_noderpc.domain.validator import ED25519, SECP256K1, PublicKey
from flask_noderpc.protocol.comet import key_types, keys, messages

CHAIN = "a-chain"
KEY = keys.PrivateKey(bytes(range(32)))
BLOCK = BlockID(b"\x01" * 32, PartSetHeader(1, b"\x02" * 32))
VOTE = Vote(VoteType.PRECOMMIT, 5, 0, BLOCK, 1_700_000_000_000_000_001, KEY.address, 0)


def test_the_public_key_is_that_of_rfc_8032() -> None:
    # RFC 8032, section 7.1, test 1.
    seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
    public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

    assert keys.PrivateKey(bytes.fromhex(seed)).public == PublicKey(
        ED25519, bytes.fromhex(public)
    )


def test_the_signature_of_nothing_is_that_of_rfc_8032() -> None:
    seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
    signature = (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    )

    assert keys.PrivateKey(bytes.fromhex(seed)).sign(b"").hex() == signature


def test_an_address_is_twenty_bytes_of_the_key_s_hash() -> None:
    assert KEY.address == sha256(KEY.public.value).digest()[:20]


@pytest.mark.parametrize(
    "key",
    [
        PublicKey(SECP256K1, bytes(32)),
        PublicKey(ED25519, bytes(31)),
        PublicKey(ED25519, b""),
        PublicKey("sr25519", bytes(32)),
    ],
)
def test_a_key_without_an_address_rule_is_refused(key: PublicKey) -> None:
    with pytest.raises(ValueError, match="expected a key of a known type"):
        key_types.address(key)


def test_two_generated_keys_differ() -> None:
    assert keys.PrivateKey.generate().seed != keys.PrivateKey.generate().seed


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_a_seed_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="32"):
        keys.PrivateKey(bytes(length))


@given(st.binary(max_size=200))
def test_a_signature_verifies(body: bytes) -> None:
    assert key_types.verify(KEY.public, KEY.sign(body), body)


@given(st.binary(max_size=50), st.integers(0, 511))
def test_a_signature_with_one_flipped_bit_is_refused(body: bytes, bit: int) -> None:
    flipped = bytearray(KEY.sign(body))
    flipped[bit // 8] ^= 1 << bit % 8

    assert not key_types.verify(KEY.public, bytes(flipped), body)


@pytest.mark.parametrize(
    "key",
    [
        PublicKey(SECP256K1, KEY.public.value),
        PublicKey(ED25519, KEY.public.value[:31]),
        keys.PrivateKey(bytes(32)).public,
    ],
)
def test_another_key_verifies_nothing(key: PublicKey) -> None:
    assert not key_types.verify(key, KEY.sign(b"body"), b"body")


@pytest.mark.parametrize("signature", [b"", bytes(63), bytes(64), bytes(65)])
def test_a_forged_signature_is_refused(signature: bytes) -> None:
    assert not key_types.verify(KEY.public, signature, b"body")


def test_a_signed_vote_stands_in_a_commit_and_verifies() -> None:
    sig = KEY.sign_vote(VOTE, CHAIN)
    commit = Commit(5, 0, BLOCK, (sig,))

    vote = keys.commit_vote(commit, 0)

    assert sig.block_id_flag == BlockIDFlag.COMMIT
    assert vote == replace(VOTE, signature=sig.signature)
    assert keys.verify_vote(vote, CHAIN, KEY.public)


@pytest.mark.parametrize(
    "other",
    [
        replace(VOTE, type=VoteType.PREVOTE),
        replace(VOTE, height=6),
        replace(VOTE, round=1),
        replace(VOTE, block_id=NO_BLOCK),
        replace(VOTE, block_id=replace(BLOCK, parts=PartSetHeader(2, b"\x02" * 32))),
        replace(VOTE, timestamp=VOTE.timestamp + 1),
    ],
    ids=["type", "height", "round", "nil", "parts", "timestamp"],
)
def test_a_signature_is_for_one_vote_only(other: Vote) -> None:
    signature = KEY.sign(messages.canonical_vote(VOTE, CHAIN))

    assert not keys.verify_vote(replace(other, signature=signature), CHAIN, KEY.public)


def test_a_vote_for_nil_is_signed_without_a_block_id() -> None:
    nil = replace(VOTE, block_id=NO_BLOCK)
    sig = CommitSig(
        BlockIDFlag.NIL,
        KEY.address,
        VOTE.timestamp,
        KEY.sign(messages.canonical_vote(nil, CHAIN)),
    )
    commit = Commit(5, 0, BLOCK, (ABSENT, sig))

    vote = keys.commit_vote(commit, 1)

    assert vote.block_id == NO_BLOCK
    assert vote.validator_index == 1
    assert keys.verify_vote(vote, CHAIN, KEY.public)
    # Field 4, the block ID, would begin with 0x22 after height 5 and round 0.
    assert messages.canonical_vote(nil, CHAIN)[12:13] == b"\x2a"


def test_a_round_above_zero_is_signed_as_eight_bytes() -> None:
    later = messages.canonical_vote(replace(VOTE, round=3), CHAIN)

    assert later[12:21] == b"\x19" + (3).to_bytes(8, "little")
