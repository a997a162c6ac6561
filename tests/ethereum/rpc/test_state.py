"""Tests of accounts at any height, their proofs, and the genesis that they begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rlp
from trie.hexary import HexaryTrie

from flask_noderpc import EmbeddedChain, jsoncodec
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.ethereum.application import patches
from flask_noderpc.ethereum.domain.execution import NO_CODE, NO_STORAGE
from flask_noderpc.protocol.secp256k1eth import keccak
from tests.ethereum.protocol.signing import TO, sender

from .contracts import CLEARS, COUNTER, ECHO, RICH, at
from .evm_node import Running, tx

BLOCKS = 12
ME = f"0x{sender().hex()}"


def run(node: Running) -> None:
    """Produce blocks, each with a call of the counter and a transfer."""
    for height in range(BLOCKS):
        node.mine(tx(2 * height, to=COUNTER, gas=60_000, value=0), tx(2 * height + 1, value=5))


@pytest.fixture(scope="module", params=["running", "restarted"])
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("state")
    made = Running(folder)
    run(made)
    if request.param == "restarted":
        made.close()
        made = Running(folder)
    yield made
    made.close()


def test_state_is_read_at_each_height(node: Running) -> None:
    for height in (0, 1, 7, BLOCKS):
        block = hex(height)
        assert node.number("eth_getTransactionCount", ME, block) == 2 * height
        assert node.number("eth_getBalance", TO, block) == 5 * height
        assert node.number("eth_getStorageAt", COUNTER, "0x0", block) == height
        assert int(node.ask("eth_call", {"to": COUNTER}, block), 16) == height + 1
    assert node.number("eth_getBalance", ME, "earliest") == RICH
    assert node.number("eth_getBalance", TO, "latest") == 5 * BLOCKS
    for method, *params in (
        ("eth_getBalance", TO),
        ("eth_getTransactionCount", ME),
        ("eth_getCode", COUNTER),
        ("eth_getStorageAt", COUNTER, "0x0"),
        ("eth_getStorageValues", {COUNTER: ["0x0"]}),
        ("eth_getProof", COUNTER, ["0x0"]),
    ):
        assert node.ask(method, *params) == node.ask(method, *params, "latest")
    by_hash = node.ask("eth_getBlockByNumber", "0x7", False)["hash"]
    assert node.number("eth_getBalance", TO, {"blockHash": by_hash}) == 35


def test_eth_capabilities_lists_historical_state(node: Running) -> None:
    found = node.ask("eth_capabilities")
    assert found["state"] == found["stateproofs"] == {"disabled": False, "oldestBlock": "0x0"}


def test_unknown_accounts_are_empty_and_future_blocks_an_error(node: Running) -> None:
    nobody = at(0xBAD)
    assert node.number("eth_getBalance", nobody, "latest") == 0
    assert node.ask("eth_getCode", nobody, "latest") == "0x"
    assert node.number("eth_getStorageAt", nobody, "0x1", "latest") == 0
    assert node.error("eth_getBalance", ME, hex(BLOCKS + 1))["message"] == "header not found"


def test_each_block_has_the_root_of_its_state_and_the_fee_that_follows(node: Running) -> None:
    before = node.ask("eth_getBlockByNumber", "0x0", False)
    roots = {before["stateRoot"]}
    for height in range(1, BLOCKS + 1):
        block = node.ask("eth_getBlockByNumber", hex(height), False)
        roots.add(block["stateRoot"])
        assert int(block["baseFeePerGas"], 16) < int(before["baseFeePerGas"], 16)
        before = block
    assert len(roots) == BLOCKS + 1
    assert node.chain.store.verify() == BLOCKS


def read(root: bytes, key: bytes, proof: list[str]) -> bytes:
    nodes = [rlp.decode(bytes.fromhex(each[2:])) for each in proof]
    found: bytes = HexaryTrie.get_from_proof(root, keccak(key), nodes)
    return found


def word(text: str) -> bytes:
    return bytes.fromhex(text[2:])


@pytest.mark.parametrize("height", [0, 3, BLOCKS])
@pytest.mark.parametrize("address", [COUNTER, CLEARS, ECHO, ME, TO, at(0xBAD)])
def test_eth_get_proof_verifies_against_the_state_root(
    node: Running, address: str, height: int
) -> None:
    root = word(node.ask("eth_getBlockByNumber", hex(height), False)["stateRoot"])
    keys = ["0x0", "0x" + "00" * 31 + "03", "0x77"]
    found = node.ask("eth_getProof", address, keys, hex(height))
    leaf = read(root, word(address), found["accountProof"])
    received = [int(found["nonce"], 16), int(found["balance"], 16)]
    hashes = [word(found["storageHash"]), word(found["codeHash"])]
    if leaf:
        nonce, balance, *own = rlp.decode(leaf)
        assert [int.from_bytes(nonce), int.from_bytes(balance)] == received
        assert own == hashes
    else:
        assert (received, hashes) == ([0, 0], [NO_STORAGE, NO_CODE])
    assert [slot["key"] for slot in found["storageProof"]] == keys
    for slot in found["storageProof"]:
        value = int(slot["value"], 16)
        if hashes[0] == NO_STORAGE:
            assert (value, slot["proof"]) == (0, [])
            continue
        key = int(slot["key"], 16).to_bytes(32)
        assert read(hashes[0], key, slot["proof"]) == (rlp.encode(value) if value else b"")


def started(folder: Path, app_state: Any) -> Running:
    """Run a chain with this application state in its genesis."""
    return Running(folder, app_state=app_state)


def test_a_genesis_gives_accounts_all_that_they_may_have(tmp_path: Path) -> None:
    code, slot = "0x6001", "0x" + "00" * 31 + "02"
    account = {"balance": "0x10", "nonce": "0x3", "code": code, "storage": {slot: "0x05"}}
    alloc = {TO: account, at(0xA)[2:]: {"balance": "12"}, at(0xB): {"balance": 13}}
    node = started(tmp_path, {"alloc": alloc})
    try:
        assert node.number("eth_getBalance", TO, "latest") == 16
        assert node.number("eth_getTransactionCount", TO, "latest") == 3
        assert node.ask("eth_getCode", TO, "latest") == code
        assert node.number("eth_getStorageAt", TO, "0x2", "0x0") == 5
        assert node.number("eth_getBalance", at(0xA), "latest") == 12
        assert node.number("eth_getBalance", at(0xB), "latest") == 13
        root = node.ask("eth_getBlockByNumber", "0x0", False)["stateRoot"]
        node.mine()
        assert node.ask("eth_getBlockByNumber", "0x1", False)["stateRoot"] == root
    finally:
        node.close()


@pytest.mark.parametrize("app_state", [b"", b"{}", b'{"alloc":{}}', b'{"alloc":null}'])
def test_a_genesis_may_have_no_accounts(app_state: bytes) -> None:
    assert patches.accounts(app_state) == {}


@pytest.mark.parametrize(
    "alloc",
    [
        {"0x12": {}},
        {TO[:-1] + "g": {}},
        {TO: {"balance": "-1"}},
        {TO: {"balance": hex(1 << 256)}},
        {TO: {"balance": "much"}},
        {TO: {"balance": 1.5}},
        {TO: {"nonce": hex(1 << 64)}},
        {TO: {"code": "0x0"}},
        {TO: {"storage": {"0x" + "00" * 33: "0x1"}}},
        {TO: {"storage": {"0x00": "0x" + "00" * 33}}},
        {TO: {"wealth": 1}},
        {TO: {}, TO.lower(): {"balance": 1}},
        [],
        "none",
    ],
)
def test_an_invalid_genesis_alloc_is_refused(tmp_path: Path, alloc: Any) -> None:
    with pytest.raises(ConfigurationError, match="accounts in alloc"):
        patches.accounts(jsoncodec.encode({"alloc": alloc}))


def test_no_chain_begins_with_a_wrong_genesis(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="accounts in alloc"):
            started(tmp_path, {"alloc": {"0x12": {}}})


def test_opening_a_chain_of_another_application_is_refused(tmp_path: Path) -> None:
    other = EmbeddedChain(tmp_path / "noderpc.db", produce=False)
    other.start()
    other.produce()
    other.close()
    with pytest.raises(ConfigurationError, match="NODERPC_APPLICATION: expected 'kvstore'"):
        Running(tmp_path)
