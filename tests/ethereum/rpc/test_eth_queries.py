"""Tests of blocks, transactions and receipts of a chain with Ethereum transactions."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain, MemoryChain
from flask_noderpc.backends.base.application import BlockExecution, BlockRequest
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.domain.abci import BlockResults, ExecTxResult
from flask_noderpc.errors import ResultNotFound
from flask_noderpc.ethereum.domain.records import Transaction
from flask_noderpc.ethereum.ethermint_double import EthermintDouble
from flask_noderpc.ethereum.protocol.ethermint import event
from flask_noderpc.ethereum.protocol.execution import ethereum_transactions
from flask_noderpc.ethereum.rpc import reader
from flask_noderpc.ethereum.rpc.reader import Reader
from flask_noderpc.protocol.secp256k1eth import keccak
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for
from tests.ethereum.protocol.cosmos_txs import cosmos_evm_message, wrapped
from tests.ethereum.protocol.signing import (
    ACCOUNT,
    CHAIN_ID,
    TO,
    fields_by_type,
    signed,
    with_blob,
)

from .chain import CONTRACT, TOPIC_A, TOPIC_B, ethereum_chain, transfer

Ask = Callable[..., Any]

# execution-apis: src/schemas/block.yaml.
REQUIRED = {
    "hash", "parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot",
    "receiptsRoot", "logsBloom", "number", "gasLimit", "gasUsed", "timestamp", "extraData",
    "mixHash", "nonce", "size", "transactions", "uncles",
}  # fmt: skip


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedChain]:
    made = ethereum_chain(tmp_path_factory.mktemp("ethereum"))
    yield made
    made.close()


def asking(chain: ChainBackend) -> Ask:
    client = app_for(
        chain, json_rpc_enable=True, evm_api="eth,net,web3,txpool,debug,erigon"
    ).test_client()

    def ask(method: str, *params: Any) -> Any:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        reply = client.post("/evm", json=call).get_json()
        return reply["result"] if "result" in reply else reply["error"]

    return ask


@pytest.fixture(scope="module")
def ask(chain: EmbeddedChain) -> Ask:
    return asking(chain)


def test_a_block_is_the_nodes_block(chain: EmbeddedChain, ask: Ask) -> None:
    for height in (1, 2, 3):
        block_id, _ = chain.reads.block(height)
        shown = ask("eth_getBlockByNumber", hex(height), False)

        assert shown.keys() >= REQUIRED
        assert shown["hash"] == "0x" + block_id.hash.hex()
        assert ask("eth_getBlockByHash", shown["hash"], False) == shown
        parent = ask("eth_getBlockByNumber", hex(height - 1), False)
        assert shown["parentHash"] == parent["hash"]
        after = chain.reads.results(height).app_hash.hex()
        assert shown["stateRoot"] == "0x" + after.rjust(64, "0")


def test_block_0_is_derived_from_the_genesis(ask: Ask) -> None:
    block = ask("eth_getBlockByNumber", "0x0", True)

    assert (block["number"], block["transactions"]) == ("0x0", [])
    assert ask("eth_getBlockByNumber", "earliest", True) == block
    assert ask("eth_getBlockByHash", block["hash"], True) == block


@pytest.mark.parametrize("tag", ["latest", "safe", "finalized"])
def test_safe_and_finalized_are_the_latest_block(ask: Ask, tag: str) -> None:
    assert ask("eth_getBlockByNumber", tag, False)["number"] == "0x3"
    assert ask("eth_blockNumber") == "0x3"


def test_transactions_are_whole_or_their_hashes(ask: Ask) -> None:
    hashes = ask("eth_getBlockByNumber", "0x3", False)["transactions"]
    whole = ask("eth_getBlockByNumber", "0x3", True)["transactions"]

    assert [tx["hash"] for tx in whole] == hashes
    assert [tx["transactionIndex"] for tx in whole] == ["0x0", "0x1"]
    for index, tx in enumerate(whole):
        assert ask("eth_getTransactionByHash", tx["hash"]) == tx
        assert ask("eth_getTransactionByBlockNumberAndIndex", "0x3", hex(index)) == tx
        assert ask("eth_getTransactionByBlockHashAndIndex", tx["blockHash"], hex(index)) == tx


def test_eth_get_transaction_returns_the_signed_fields(ask: Ask) -> None:
    (tx,) = ask("eth_getBlockByNumber", "0x2", True)["transactions"]

    assert tx["from"] == ACCOUNT.address.lower()
    assert (tx["to"], tx["value"], tx["type"]) == (TO.lower(), "0x5", "0x2")
    assert (tx["chainId"], tx["nonce"], tx["yParity"]) == (hex(CHAIN_ID), "0x0", tx["v"])
    assert tx["accessList"] == []
    raw = ask("eth_getRawTransactionByHash", tx["hash"])
    assert raw == "0x" + transfer(0, value=5).hex()
    assert tx["hash"] == "0x" + keccak(bytes.fromhex(raw[2:])).hex()
    assert ask("debug_getRawTransaction", tx["hash"]) == raw


def test_receipts_count_over_the_block(ask: Ask) -> None:
    receipts = ask("eth_getBlockReceipts", "0x3")

    assert [r["status"] for r in receipts] == ["0x1", "0x1"]
    used = [int(r["gasUsed"], 16) for r in receipts]
    assert [int(r["cumulativeGasUsed"], 16) for r in receipts] == [used[0], sum(used)]
    logs = [log for receipt in receipts for log in receipt["logs"]]
    assert [log["logIndex"] for log in logs] == ["0x0", "0x1", "0x2"]
    assert [
        ask("eth_getTransactionReceipt", r["transactionHash"]) for r in receipts
    ] == receipts
    assert ask("eth_getTransactionLogs", receipts[1]["transactionHash"]) == logs[1:]


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({}, 3),
        ({"fromBlock": "earliest"}, 3),
        ({"fromBlock": "0x0", "toBlock": "0x2"}, 0),
        ({"address": "0x" + CONTRACT.hex()}, 3),
        ({"address": ["0x" + "00" * 20]}, 0),
        ({"topics": []}, 3),
        ({"topics": ["0x" + TOPIC_A.hex()]}, 2),
        ({"topics": [None, "0x" + TOPIC_B.hex()]}, 1),
        ({"topics": [None, None]}, 1),
        ({"topics": [["0x" + TOPIC_B.hex(), "0x" + TOPIC_A.hex()]]}, 2),
        ({"topics": [["0x" + TOPIC_B.hex(), None]]}, 2),
    ],
)
def test_logs_are_found_by_address_and_topics(
    ask: Ask, expected: dict[str, Any], found: int
) -> None:
    assert len(ask("eth_getLogs", expected)) == found


def test_logs_of_one_block_are_found_by_its_hash(ask: Ask) -> None:
    block = ask("eth_getBlockByNumber", "0x3", False)

    assert len(ask("eth_getLogs", {"blockHash": block["hash"]})) == 3
    assert ask("eth_getLogs", {"blockHash": "0x" + "11" * 32}) == {
        "code": -32000,
        "message": "unknown block",
    }


def test_a_receipt_shows_blob_gas_used(tmp_path: Path) -> None:
    with closing(ethereum_chain(tmp_path)) as chain:
        ask = asking(chain)
        fields = fields_by_type()["blob"]
        del fields["blobVersionedHashes"]
        sent = ask("eth_sendRawTransaction", "0x" + with_blob(fields).hex())
        chain.produce()

        receipt = ask("eth_getTransactionReceipt", sent)

        assert (receipt["type"], receipt["status"]) == ("0x3", "0x1")
        assert (receipt["blobGasUsed"], receipt["blobGasPrice"]) == (hex(1 << 17), "0x1")
        (before, _) = ask("eth_getBlockReceipts", "0x3")
        assert not {"blobGasUsed", "blobGasPrice"} & before.keys()


def test_eth_capabilities_lists_what_the_node_serves(ask: Ask) -> None:
    head = ask("eth_getBlockByNumber", "latest", False)
    kept, gone = {"disabled": False, "oldestBlock": "0x0"}, {"disabled": True}

    assert ask("eth_capabilities") == {
        "head": {"number": head["number"], "hash": head["hash"]},
        "blocks": kept,
        "tx": kept,
        "receipts": kept,
        "logs": kept,
        "state": gone,
        "stateproofs": gone,
    }


def test_raw_forms_are_given_by_a_plain_number_too(ask: Ask) -> None:
    assert ask("debug_getHeaderRlp", 3) == ask("debug_getRawHeader", "0x3")
    assert ask("debug_getBlockRlp", 3) == ask("debug_getRawBlock", "0x3")
    printed = ask("debug_printBlock", 3)
    assert json.loads(printed) == ask("eth_getBlockByNumber", "0x3", True)
    assert len(printed.splitlines()) > 20


@pytest.mark.parametrize(
    ("number", "code", "text"),
    [
        (99, -32000, "block #99 not found"),
        (2**64 - 1, -32000, f"block #{2**64 - 1} not found"),
        (
            "0x1",
            -32602,
            "invalid argument 0: json: cannot unmarshal string into Go value of type uint64",
        ),
        (
            -1,
            -32602,
            "invalid argument 0: json: cannot unmarshal number -1 into Go value of type uint64",
        ),
    ],
)
def test_a_plain_number_is_read_as_geth_reads_it(
    ask: Ask, number: Any, code: int, text: str
) -> None:
    assert ask("debug_getBlockRlp", number) == {"code": code, "message": text}


@pytest.mark.parametrize("method", ["debug_seedHash", "debug_stacks"])
def test_unsupported_methods_do_not_exist(ask: Ask, method: str) -> None:
    assert ask(method)["code"] == -32601


class Full(EthermintDouble):
    """A chain whose transaction does not fit the block at some heights."""

    full_at: Container[int] = ()

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        if block.height not in self.full_at:
            return super().finalize_block(block)
        (tx,) = ethereum_transactions(block.txs[0])
        received = event("ethereum_tx", ethereumTxHash=f"0x{tx.hash.hex()}", txIndex="0")
        log = "out of gas in location: block gas meter; gasWanted: 100000"
        unfit = ExecTxResult(code=11, log=log, events=(received,))
        return replace(super().finalize_block(replace(block, txs=())), tx_results=(unfit,))


@pytest.mark.parametrize(
    ("full_at", "found", "status"),
    [({1}, "0x2", "0x1"), ({2}, "0x1", "0x1"), ({1, 2}, "0x2", "0x0")],
)
def test_of_a_hash_in_two_blocks_the_one_that_succeeded_counts_or_the_newest(
    monkeypatch: pytest.MonkeyPatch, full_at: set[int], found: str, status: str
) -> None:
    monkeypatch.setattr(Full, "full_at", full_at)
    raw = transfer(0)
    maker = ChainMaker(application=Full)
    # Wrapped in another message, it is another transaction for the node.
    blocks = [maker.block(raw), maker.block(wrapped(cosmos_evm_message(raw)))]
    ask = asking(ChainBackend(MemoryChain(maker.genesis, blocks, state=maker.state)))
    own_hash = "0x" + keccak(raw).hex()

    receipt = ask("eth_getTransactionReceipt", own_hash)

    assert (receipt["blockNumber"], receipt["status"]) == (found, status)
    assert ask("eth_getTransactionByHash", own_hash)["blockNumber"] == found
    for height in full_at:
        (unfit,) = ask("eth_getBlockReceipts", hex(height))
        assert (unfit["transactionHash"], unfit["status"]) == (own_hash, "0x0")


def test_uncles_are_counted_and_there_are_none(ask: Ask) -> None:
    assert ask("eth_getUncleCountByBlockNumber", "0x1") == "0x0"
    assert ask("eth_getUncleCountByBlockNumber", "0x99") is None
    assert ask("eth_getUncleByBlockNumberAndIndex", "0x1", "0x0") is None


def test_a_sent_transaction_waits_and_is_committed(tmp_path: Path) -> None:
    chain = ethereum_chain(tmp_path)
    try:
        ask = asking(chain)
        sent = ask("eth_sendRawTransaction", "0x" + transfer(3).hex())

        waiting = ask("eth_getTransactionByHash", sent)
        assert (waiting["blockHash"], waiting["transactionIndex"]) == (None, None)
        assert ask("eth_getTransactionReceipt", sent) is None
        assert ask("txpool_status") == {"pending": "0x1", "queued": "0x0"}
        pool = ask("txpool_content")["pending"]
        assert pool == {ACCOUNT.address: {"3": waiting}}
        assert ask("eth_getBlockByNumber", "pending", False)["transactions"] == [sent]
        assert ask("eth_sendRawTransaction", "0x" + transfer(3).hex()) == {
            "code": -32000,
            "message": "already known",
        }

        chain.produce()

        assert ask("eth_getTransactionReceipt", sent)["blockNumber"] == "0x4"
        assert ask("txpool_status") == {"pending": "0x0", "queued": "0x0"}
    finally:
        chain.close()


_UNPROTECTED = {"nonce": 9, "gas": 21000, "to": TO, "value": 0, "gasPrice": 1}


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("0x", "typed transaction too short"),
        ("0x0500", "transaction type not supported"),
        (
            "0x"
            + signed({"nonce": 9, "gas": 21000, "to": TO, "value": 0, "gasPrice": 1}).hex(),
            "only replay-protected (EIP-155) transactions allowed over RPC",
        ),
        (
            "0x" + signed({**_UNPROTECTED, "chainId": 1}).hex(),
            "invalid chain id for signer: have 1 want 9000",
        ),
    ],
)
def test_invalid_transactions_get_geths_errors(ask: Ask, raw: str, text: str) -> None:
    assert ask("eth_sendRawTransaction", raw) == {"code": -32000, "message": text}


def test_a_sent_transaction_can_be_waited_for(tmp_path: Path) -> None:
    chain = ethereum_chain(tmp_path)
    try:
        ask = asking(chain)
        with ThreadPoolExecutor(1) as pool:
            receipt = pool.submit(ask, "eth_sendRawTransactionSync", "0x" + transfer(3).hex())
            while not chain.mempool.pending_count().total:
                assert not receipt.done(), receipt.result()
            chain.produce()
            assert receipt.result()["blockNumber"] == "0x4"

        late = ask("eth_sendRawTransactionSync", "0x" + transfer(4).hex(), "0x1")

        assert late["code"] == 4
        assert ask("eth_getTransactionByHash", late["data"])["blockHash"] is None
    finally:
        chain.close()


class NotYet(MemoryChain):
    """A foreign node that has a block before its results."""

    def results(self, height: int) -> BlockResults:
        raise ResultNotFound("not yet")


def test_a_pending_block_on_an_unreadable_head_is_null() -> None:
    sample = make_chain(3)
    ask = asking(ChainBackend(NotYet(sample.genesis, sample.blocks, state=sample.state)))

    assert ask("eth_getBlockByNumber", "pending", False) is None
    assert ask("eth_getBlockByNumber", "latest", False) is None


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the raw transactions whose senders are recovered, one entry for each recovery."""
    seen: list[bytes] = []

    def reading(raw: bytes) -> tuple[Transaction, ...]:
        seen.append(raw)
        return ethereum_transactions(raw)

    monkeypatch.setattr(reader, "ethereum_transactions", reading)
    return seen


def test_looking_for_a_transaction_reads_no_senders(tmp_path: Path, read: list[bytes]) -> None:
    with closing(ethereum_chain(tmp_path)) as chain:
        waiting = transfer(3)
        chain.mempool.submit(waiting)
        ask = asking(chain)

        assert ask("eth_getTransactionByHash", "0x" + "ab" * 32) is None
        assert read == []
        assert ask("eth_getTransactionByHash", "0x" + keccak(waiting).hex())["nonce"] == "0x3"
        assert read == [waiting]


def test_pending_transactions_are_decoded_once(tmp_path: Path, read: list[bytes]) -> None:
    with closing(ethereum_chain(tmp_path)) as chain:
        ask = asking(chain)
        polled = ask("eth_newPendingTransactionFilter")
        waiting = [transfer(3), transfer(4)]
        for raw in waiting:
            chain.mempool.submit(raw)

        shown = [tx["hash"] for tx in ask("eth_pendingTransactions")]

        assert shown == ["0x" + keccak(raw).hex() for raw in waiting]
        assert ask("eth_getBlockByNumber", "pending", False)["transactions"] == shown
        assert ask("eth_getFilterChanges", polled) == shown
        assert ask("txpool_status")["pending"] == "0x2"
        assert ask("eth_getTransactionByHash", shown[1])["nonce"] == "0x4"
        assert read == waiting


@pytest.mark.parametrize("room", ["_CACHED_PENDING", "_CACHED_PENDING_BYTES"])
def test_decoded_transactions_are_cached_within_the_limit(
    tmp_path: Path, read: list[bytes], monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    monkeypatch.setattr(reader, room, 1)
    with closing(ethereum_chain(tmp_path)) as chain:
        waiting = [transfer(3), transfer(4)]
        for raw in waiting:
            chain.mempool.submit(raw)
        ask = asking(chain)

        assert ask("eth_pendingTransactions") == ask("eth_pendingTransactions")
        assert read == waiting * 2


def test_large_blocks_are_cached_within_the_limit(
    chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Reader(chain)
    before = kept.block_at(2)
    assert [kept.block_at(3) is kept.block_at(3), kept.block_at(2) is before] == [True, True]

    monkeypatch.setattr(reader, "_CACHED_BYTES", 1)
    kept = Reader(chain)
    before = kept.block_at(2)
    assert kept.block_at(3) is kept.block_at(3)
    assert kept.block_at(2) is not before


def test_methods_of_erigon_find_headers_and_heights(ask: Ask) -> None:
    latest = ask("eth_getHeaderByNumber", "latest")
    for block in "latest", latest["number"]:
        assert ask("erigon_getHeaderByNumber", block) == latest
    assert ask("erigon_getHeaderByHash", latest["hash"]) == latest
    assert ask("erigon_getHeaderByNumber", "0xfffff") is None
    for given, expected in (([], latest["number"]), (["earliest"], "0x0")):
        assert ask("erigon_blockNumber", *given) == expected
    # erigon answers heights with the latest one.
    assert ask("erigon_blockNumber", "0x1") == latest["number"] != "0x1"
