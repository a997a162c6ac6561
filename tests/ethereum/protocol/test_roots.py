"""Tests of roots, blooms and consensus bytes, compared with geth's chain and a library."""

from __future__ import annotations

import pytest
import rlp
from hypothesis import given
from hypothesis import strategies as st
from trie.hexary import HexaryTrie

from flask_noderpc.ethereum.domain.records import EMPTY_ROOT
from flask_noderpc.ethereum.protocol.consensus import (
    bloom,
    encode_header,
    may_have,
)
from flask_noderpc.ethereum.protocol.execution import created_address, encode_receipt
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.ethereum.protocol.trie import ordered_root
from flask_noderpc.protocol.secp256k1eth import keccak, to_checksum

from . import geth


def test_nothing_has_the_empty_root() -> None:
    assert EMPTY_ROOT.hex() == (
        "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
    )
    assert ordered_root([]) == EMPTY_ROOT


def test_every_block_of_geths_chain_has_our_root_of_its_transactions() -> None:
    for block in geth.blocks():
        assert ordered_root(geth.raws(block)) == block[0][4]


def _trie_root(values: list[bytes]) -> bytes:
    trie = HexaryTrie({})
    for index, value in enumerate(values):
        trie[rlp.encode(index)] = value
    return trie.root_hash


@given(st.lists(st.binary(min_size=1, max_size=70), max_size=20))
def test_any_values_have_the_root_of_a_trie(values: list[bytes]) -> None:
    assert ordered_root(values) == _trie_root(values)


@pytest.mark.parametrize("count", [127, 128, 129, 255, 256, 257, 1000])
def test_indices_of_more_bytes_have_the_root_of_a_trie(count: int) -> None:
    values = [b"value %d" % index for index in range(count)]
    assert ordered_root(values) == _trie_root(values)


def test_geths_receipts_have_the_root_and_the_bloom_of_their_block() -> None:
    block = geth.blocks()[-1]
    replies = geth.replies()["block_receipts"]
    receipts = list(map(geth.receipt, replies, geth.raws(block)))

    assert sum(len(receipt.logs) for receipt in receipts) == 11
    assert [r.bloom for r in receipts] == [geth.data(reply["logsBloom"]) for reply in replies]
    assert bloom(log for receipt in receipts for log in receipt.logs) == block[0][6]
    assert ordered_root([encode_receipt(receipt) for receipt in receipts]) == block[0][5]


def test_a_typed_receipt_has_its_type_in_front() -> None:
    reply = next(r for r in geth.replies()["receipts"] if r["type"] == "0x2")
    block = geth.blocks()[int(reply["blockNumber"], 16) - 1]
    receipt = geth.receipt(reply, geth.raws(block)[int(reply["transactionIndex"], 16)])
    (log,) = receipt.logs

    encoded = encode_receipt(receipt)
    assert encoded[0] == 2
    assert rlp.decode(encoded[1:]) == [
        b"\x01",
        rlp.encode(receipt.cumulative_gas_used)[1:],
        receipt.bloom,
        [[log.address, list(log.topics), log.data]],
    ]


def test_geths_headers_have_the_hash_that_their_child_names() -> None:
    until_shanghai = [block for block in geth.blocks() if len(block[0]) <= 16]
    assert {len(block[0]) for block in until_shanghai} == {15, 16}
    for block, child in zip(until_shanghai, geth.blocks()[1:], strict=False):
        assert keccak(encode_header(geth.header(block))) == child[0][0]


def test_a_created_contract_is_where_geth_puts_it() -> None:
    replies = [r for r in geth.replies()["receipts"] if r["contractAddress"]]
    assert replies
    for reply in replies:
        block = geth.blocks()[int(reply["blockNumber"], 16) - 1]
        raw = geth.raws(block)[int(reply["transactionIndex"], 16)]
        tx = decode(raw)
        assert created_address(tx.sender, tx.nonce) == geth.data(reply["contractAddress"])


def test_a_bloom_filter_matches_its_logs_and_excludes_another_address() -> None:
    receipts = map(geth.receipt, geth.replies()["block_receipts"], geth.raws(geth.blocks()[-1]))
    log = next(log for receipt in receipts for log in receipt.logs)
    bits = bloom([log])

    assert may_have(bits, [log.address], [[topic] for topic in log.topics])
    assert may_have(bits, [], [])
    assert may_have(bits, [b"\x01" * 20, log.address], [[], []])
    assert not may_have(bits, [b"\x01" * 20], [])
    assert not may_have(bits, [log.address], [[b"\x01" * 32]])


# Examples of EIP-55.
@pytest.mark.parametrize(
    "address",
    [
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ],
)
def test_letters_carry_the_checksum(address: str) -> None:
    assert to_checksum(bytes.fromhex(address[2:])) == address
