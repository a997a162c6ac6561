"""Tests that a transaction with blobs is accepted without them, once they are verified."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import rlp

from flask_noderpc.errors import InvalidTransaction
from flask_noderpc.ethereum.protocol.transactions import decode, without_blobs

from .signing import ACCOUNT, BLOB, TYPES, fields_by_type, sample, sender, with_blob

FIELDS = {k: v for k, v in fields_by_type()["blob"].items() if k != "blobVersionedHashes"}


@cache
def travelling() -> bytes:
    return with_blob(FIELDS)


@pytest.mark.integration
def test_the_blob_transaction_of_these_tests_is_eth_accounts() -> None:
    made = ACCOUNT.sign_transaction(FIELDS, blobs=[BLOB])
    assert bytes(made.raw_transaction) == travelling()


def _changed(place: int, value: Any) -> bytes:
    items = list(rlp.decode(travelling()[1:]))
    items[place] = value
    return b"\x03" + bytes(rlp.encode(items))


def test_blob_transactions_of_eth_account_are_accepted_without_sidecar() -> None:
    raw = travelling()
    tx = decode(without_blobs(raw))
    assert len(raw) > len(BLOB)
    assert (tx.sender, len(tx.blob_versioned_hashes)) == (sender(), 1)
    assert tx.raw == b"\x03" + bytes(rlp.encode(rlp.decode(raw[1:])[0]))


def test_a_sidecar_with_a_proof_for_each_whole_blob_is_taken() -> None:
    body, _, blobs, commitments, _ = rlp.decode(travelling()[1:])
    raw = b"\x03" + bytes(rlp.encode([body, blobs, commitments, [bytes(48)]]))
    assert without_blobs(raw) == without_blobs(travelling())


@pytest.mark.parametrize("name", [name for name in TYPES if name != "blob"])
def test_transactions_of_other_types_are_unchanged(name: str) -> None:
    assert without_blobs(sample(name)) == sample(name)


def test_a_blob_transaction_without_its_blobs_is_refused() -> None:
    with pytest.raises(InvalidTransaction, match="missing sidecar in blob transaction"):
        without_blobs(sample("blob"))


@pytest.mark.parametrize("raw", [b"", b"\x03", b"\x03\xc0", b"\x03\xc1\xc0", b"\x03\x80", b"x"])
def test_bytes_that_are_no_transaction_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidTransaction):
        decode(without_blobs(raw))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (2, [], "blobs: expected 1 for the transaction's versioned hashes, got 0"),
        (2, [BLOB[1:]], "blobs: expected 131072 bytes for each, got 131071"),
        (
            3,
            [b"\x01" * 48],
            "blob 0: expected a commitment that matches the transaction's versioned hash, got"
            " another; sign the transaction again for these blobs",
        ),
        (3, [], "commitments: expected 1 for the transaction's versioned hashes, got 0"),
        (4, [bytes(48)], "proofs: expected 128 for the transaction's versioned hashes, got 1"),
        (4, b"no list", "rlp: expected input list for proofs"),
    ],
)
def test_blobs_of_another_transaction_are_refused(place: int, value: Any, message: str) -> None:
    with pytest.raises(InvalidTransaction) as caught:
        without_blobs(_changed(place, value))
    assert str(caught.value) == message


def test_a_sidecar_of_another_version_or_with_more_is_refused() -> None:
    items = list(rlp.decode(travelling()[1:]))
    with pytest.raises(InvalidTransaction, match="invalid blob sidecar version 2"):
        without_blobs(_changed(1, b"\x02"))
    with pytest.raises(InvalidTransaction, match="too many elements"):
        without_blobs(b"\x03" + bytes(rlp.encode([*items, b"more"])))
