"""Tests that signed transactions of eth-account and geth are decoded as by those."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import rlp
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc.errors import InvalidTransaction
from flask_noderpc.ethereum.domain.records import AccessListEntry, Transaction
from flask_noderpc.ethereum.protocol.transactions import decode, encode

from ...helpers.growth import check_linear
from . import geth
from .signing import ACCOUNT, CHAIN_ID, TYPES, fields_by_type, sample, sender


@pytest.mark.parametrize("name", TYPES)
def test_transactions_of_eth_account_decode_as_signed(name: str) -> None:
    fields = fields_by_type()[name]
    signed = ACCOUNT.sign_transaction(fields)
    tx = decode(bytes(signed.raw_transaction))

    assert tx.hash == bytes(signed.hash)
    assert tx.sender == sender()
    assert (tx.v, tx.r, tx.s) == (signed.v, signed.r, signed.s)
    assert tx.chain_id == fields.get("chainId")
    assert (tx.type, tx.nonce, tx.gas, tx.value, tx.data) == (
        fields.get("type", 0),
        3,
        90_000,
        7,
        b"\0call",
    )
    assert tx.to == (bytes.fromhex(fields["to"][2:]) or None)
    assert tx.gas_price == fields.get("gasPrice")
    assert tx.max_fee_per_gas == fields.get("maxFeePerGas")
    assert tx.max_priority_fee_per_gas == fields.get("maxPriorityFeePerGas")
    if "accessList" in fields:
        keys = (b"\x11" * 32, bytes(32))
        assert tx.access_list == (AccessListEntry(b"\x2b" * 20, keys),)


@pytest.mark.parametrize("name", TYPES)
def test_a_decoded_transaction_encodes_to_the_same_bytes(name: str) -> None:
    raw = sample(name)
    assert encode(decode(raw)) == raw == decode(raw).raw


def test_blobs_and_authorizations_are_read() -> None:
    blob = decode(sample("blob"))
    assert blob.max_fee_per_blob_gas == 9
    assert blob.blob_versioned_hashes == (b"\x01" + b"\x22" * 31,)
    (authorization,) = decode(sample("set code")).authorizations
    assert (authorization.chain_id, authorization.nonce) == (CHAIN_ID, 1)
    assert authorization.address == b"\x2b" * 20


def test_every_transaction_of_geths_chain_encodes_to_the_same_bytes() -> None:
    raws = [raw for block in geth.blocks() for raw in geth.raws(block)]
    txs = [decode(raw) for raw in raws]
    assert {tx.type for tx in txs} == {0, 1, 2, 3, 4}
    assert [encode(tx) for tx in txs] == raws


@pytest.mark.parametrize("reply", geth.replies()["transactions"], ids=lambda r: r["hash"])
def test_a_mined_transaction_reads_as_geth_answers_it(reply: Any) -> None:
    block = geth.blocks()[int(reply["blockNumber"], 16) - 1]
    tx = decode(geth.raws(block)[int(reply["transactionIndex"], 16)])

    assert "0x" + tx.hash.hex() == reply["hash"]
    assert "0x" + tx.sender.hex() == reply["from"]
    assert "0x" + tx.data.hex() == reply["input"]
    for name in ("type", "nonce", "gas", "value", "v", "r", "s"):
        assert getattr(tx, name) == int(reply[name], 16)
    assert tx.access_list == tuple(
        AccessListEntry(
            geth.data(entry["address"]), tuple(map(geth.data, entry["storageKeys"]))
        )
        for entry in reply.get("accessList", ())
    )
    if "chainId" in reply:
        assert tx.chain_id == int(reply["chainId"], 16)
    else:
        assert tx.chain_id is None


def test_the_price_of_gas_is_the_tip_on_the_base_fee_below_the_maximum() -> None:
    tx = decode(sample("dynamic fee"))
    assert tx.gas_price_at(10**9) == 2 * 10**9
    assert tx.gas_price_at(9 * 10**9) == 5 * 10**9
    assert tx.gas_price_at(None) == 10**9
    assert decode(sample("legacy")).gas_price_at(10**12) == 10**9


def _legacy(**changes: Any) -> bytes:
    tx = replace(decode(sample("legacy")), **changes)
    return encode(tx)


def _items(name: str = "legacy") -> list[Any]:
    raw = sample(name)
    items: list[Any] = rlp.decode(raw if raw[0] > 0x7F else raw[1:])
    return items


def _with(position: int, item: Any, name: str = "legacy") -> bytes:
    items = _items(name)
    items[position] = item
    kind = sample(name)[:1] if name != "legacy" else b""
    return bytes(kind + rlp.encode(items))


_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_BAD_SIGNATURE = "invalid transaction v, r, s values"

# geth: rlp/decode.go, core/types/transaction.go, core/types/transaction_signing.go.
_REFUSED = {
    b"": "typed transaction too short",
    b"\x02": "typed transaction too short",
    b"\x05\xc0": "transaction type not supported",
    b"\x00\xc0": "transaction type not supported",
    b"\x7f\xc0": "transaction type not supported",
    b"\xc0": "rlp: too few elements for types.LegacyTx",
    b"\x02\xc0": "rlp: too few elements for types.DynamicFeeTx",
    b"\x80": "rlp: expected input list for types.LegacyTx",
    b"\x01\x80": "rlp: expected input list for types.AccessListTx",
    b"\xc1": "rlp: value size exceeds available input length",
    b"\xf8": "rlp: value size exceeds available input length",
    b"\xff" * 9: "rlp: value size exceeds available input length",
    b"\xf8\x01\x80": "rlp: non-canonical size information for types.LegacyTx",
    b"\xf9\x00\x38" + bytes(56): "rlp: non-canonical size information for types.LegacyTx",
    b"\xc2\x82\x01": "rlp: element is larger than containing list",
    b"\xc1\x00": "rlp: non-canonical integer (leading zero bytes) for uint64,"
    " decoding into (types.LegacyTx).Nonce",
    b"\xc2\x81\x01": "rlp: non-canonical size information for uint64,"
    " decoding into (types.LegacyTx).Nonce",
    b"\xc1\xc0": "rlp: expected input string or byte for uint64,"
    " decoding into (types.LegacyTx).Nonce",
    b"\xca\x89" + b"\x01" * 9: "rlp: input string too long for uint64,"
    " decoding into (types.LegacyTx).Nonce",
    b"\x03\xc1\xc0": "blob transaction: expected one without blobs, as in a block, got one with"
    " blobs; send it with eth_sendRawTransaction, which removes them",
    b"\x03\x80": "rlp: expected input list for types.BlobTx",
    b"\x03\xe2\xa1" + b"\x01" * 33: "rlp: value too large for uint256",
}


@pytest.mark.parametrize(("raw", "text"), _REFUSED.items())
def test_invalid_transactions_get_geths_errors(raw: bytes, text: str) -> None:
    with pytest.raises(InvalidTransaction) as refused:
        decode(raw)
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (lambda: sample("legacy") + b"\0", "rlp: input contains more than one value"),
        (
            lambda: rlp.encode([*_items(), b""]),
            "rlp: input list has too many elements for types.LegacyTx",
        ),
        (
            lambda: _with(3, b"\1" * 19),
            "rlp: input string too short for common.Address, decoding into (types.LegacyTx).To",
        ),
        (
            lambda: _with(3, b"\1" * 21),
            "rlp: input string too long for common.Address, decoding into (types.LegacyTx).To",
        ),
        (
            lambda: _with(3, []),
            "rlp: wrong kind of empty value (got List, want String) for *common.Address,"
            " decoding into (types.LegacyTx).To",
        ),
        (
            lambda: _with(3, [b"x"]),
            "rlp: expected input string or byte for common.Address,"
            " decoding into (types.LegacyTx).To",
        ),
        (
            lambda: _with(4, b"\1" * 33),
            "value: expected a number of at most 256 bits, got 257 bits",
        ),
        (
            lambda: _with(8, [[b"\1" * 20, [b"\2" * 31]]], "dynamic fee"),
            "rlp: input string too short for common.Hash,"
            " decoding into (types.DynamicFeeTx).AccessList[0].StorageKeys[0]",
        ),
        (
            lambda: _with(5, b"", "blob"),
            "rlp: input string too short for common.Address, decoding into (types.BlobTx).To",
        ),
        (
            lambda: _with(9, [[b"\1"]], "set code"),
            "rlp: too few elements for types.SetCodeAuthorization,"
            " decoding into (types.SetCodeTx).AuthList[0]",
        ),
        (lambda: _legacy(r=0), _BAD_SIGNATURE),
        (lambda: _legacy(s=0), _BAD_SIGNATURE),
        (lambda: _legacy(r=_ORDER), _BAD_SIGNATURE),
        (lambda: _legacy(s=_ORDER // 2 + 1), _BAD_SIGNATURE),
        (lambda: _legacy(v=0), _BAD_SIGNATURE),
        (lambda: _legacy(v=29), _BAD_SIGNATURE),
        (lambda: _with(9, b"\x02", "dynamic fee"), _BAD_SIGNATURE),
        # No point of the curve has 5 as its first coordinate.
        (lambda: _legacy(r=5), "recovery failed"),
    ],
)
def test_a_changed_transaction_is_refused_in_geths_words(raw: Any, text: str) -> None:
    with pytest.raises(InvalidTransaction) as refused:
        decode(raw())
    assert str(refused.value) == text


def _decodes(raw: bytes) -> Transaction | None:
    try:
        return decode(raw)
    except InvalidTransaction:
        return None


@given(st.binary(max_size=300))
def test_any_bytes_decode_or_are_refused(raw: bytes) -> None:
    tx = _decodes(raw)
    assert tx is None or encode(tx) == raw


_RLP = st.recursive(st.binary(max_size=40), lambda items: st.lists(items, max_size=14))


@given(st.sampled_from([b"", b"\1", b"\2", b"\3", b"\4"]), _RLP)
def test_any_list_decodes_or_is_refused(kind: bytes, item: Any) -> None:
    tx = _decodes(kind + rlp.encode(item))
    assert tx is None or encode(tx) == kind + rlp.encode(item)


@settings(max_examples=300)
@given(st.sampled_from(TYPES), st.data())
def test_one_changed_byte_makes_no_second_reading(name: str, choose: st.DataObject) -> None:
    raw = bytearray(sample(name))
    at = choose.draw(st.integers(0, len(raw) - 1))
    raw[at] = choose.draw(st.integers(0, 255))
    tx = _decodes(bytes(raw))
    assert tx is None or encode(tx) == bytes(raw)


def _nested(depth: int) -> bytes:
    body = b""
    while len(body) < depth:
        body = rlp.codec.length_prefix(len(body), 192) + body
    return body


@pytest.mark.parametrize(
    "raw",
    [
        lambda size: _nested(size // 250),
        lambda size: b"\x02" + _nested(size // 250),
        lambda size: b"\xfa" + size.to_bytes(3, "big") + b"\x80" * size,
        lambda size: _with(8, [[b"\1" * 20, []]] * (size // 23), "dynamic fee"),
        lambda size: _with(8, [[b"\1" * 20, [b"\2" * 32] * (size // 33)]], "dynamic fee"),
        lambda size: _with(
            9, [[b"\1", b"\2" * 20, b"", b"", b"\1", b"\1"]] * (size // 27), "set code"
        ),
        lambda size: _with(7, bytes(size), "dynamic fee"),
    ],
)
def test_the_time_of_a_million_bytes_grows_linearly(raw: Callable[[int], bytes]) -> None:
    check_linear(_decodes, raw, 1_000_000)
