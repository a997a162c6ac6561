"""Tests of the log of a development chain: messages of console.log, and why transactions
failed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode
from web3 import HTTPProvider, Web3

from flask_noderpc import EmbeddedChain
from flask_noderpc.protocol.secp256k1eth import keccak
from flask_noderpc.testing.node import serve

from .fixtures import FIRST, asked, chain_of, dev_app, settled

# Copies its calldata to the memory and passes it to the console's address.
_COPY = "365f5f375f5f365f73000000000000000000636f6e736f6c652e6c6f675afa"
PRINTS = "0x" + "c0" * 20
# Prints, and reverts with its calldata.
REVERTS = "0x" + "c1" * 20
# Runs out of gas by an endless loop.
LOOPS = "0x" + "c2" * 20
# Prints 200 times what its calldata has.
PRINTS_MORE = "0x" + "c3" * 20
CODES = {
    PRINTS: f"0x{_COPY}00",
    REVERTS: f"0x{_COPY}50365ffd",
    LOOPS: "0x5b5f56",
    # PUSH1 200; loop: print, POP, PUSH1 1, SWAP1, SUB, DUP1, PUSH1 2, JUMPI.
    PRINTS_MORE: f"0x60c85b{_COPY}5060019003806002575000",
}
GAS = 600_000


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = dev_app(tmp_path_factory.mktemp("dev"))
    client = made.test_client()
    for address, code in CODES.items():
        call = {"id": 1, "jsonrpc": "2.0", "method": "anvil_setCode", "params": [address, code]}
        assert "error" not in client.post("/evm", json=call).get_json()
    yield made
    chain_of(made).close()


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """Return a function that returns the lines logged since its last call."""
    caplog.set_level(logging.INFO, "flask_noderpc.contracts")

    def found() -> list[str]:
        name = "flask_noderpc.contracts"
        texts = [record.getMessage() for record in caplog.records if record.name == name]
        caplog.clear()
        return texts

    return found


def printing(signature: str, *values: Any) -> str:
    types = [each for each in signature.partition("(")[2].rstrip(")").split(",") if each]
    # The selector is computed from the given names; the encoder knows only ABI's names.
    named = [{"uint": "uint256", "int": "int256"}.get(each, each) for each in types]
    return "0x" + (keccak(signature.encode())[:4] + encode(named, values)).hex()


def sent(chain: EmbeddedChain, w3: Any, to: str, data: str) -> Any:
    to = Web3.to_checksum_address(to)
    return settled(chain, w3, {"from": FIRST, "to": to, "data": data, "gas": GAS})


@pytest.mark.parametrize(
    ("signature", "values", "text"),
    [
        ("log()", [], ""),
        ("log(string)", ["hello"], "hello"),
        ("log(uint256)", [7], "7"),
        ("log(uint)", [2**256 - 1], str(2**256 - 1)),
        ("log(int256)", [-5], "-5"),
        ("log(int)", [-6], "-6"),
        ("log(bool)", [True], "true"),
        ("log(address)", [FIRST], FIRST),
        ("log(bytes)", [b"\1\2"], "0x0102"),
        ("log(bytes4)", [b"\1\2\3\4"], "0x01020304"),
        ("log(string,uint256)", ["total", 12], "total 12"),
        ("log(string,uint)", ["total", 12], "total 12"),
        ("log(string,uint256)", ["%d of them", 12], "12 of them"),
        ("log(string,uint256,bool)", ["100%% of %x", 255, False], "100% of 0xff false"),
        ("log(string,string)", ["%s and %s", "one"], "one and %s"),
        ("log(address,bool,string,uint256)", [FIRST, False, "x", 1], f"{FIRST} false x 1"),
        ("log(string)", ["two\nlines\x1b[31m"], "two\\nlines\\x1b[31m"),
        ("log(string)", ["\u00fcber"], "\u00fcber"),
        ("print(uint256)", [1], "0x6bb0ae10" + "00" * 31 + "01"),
    ],
)
def test_messages_have_their_values(
    chain: EmbeddedChain, w3: Any, lines: Any, signature: str, values: list[Any], text: str
) -> None:
    data = printing(signature, *values)
    receipt = sent(chain, w3, PRINTS, data)
    source = f"transaction {receipt['transactionHash'].to_0x_hex()}"
    assert receipt["status"] == 1
    assert lines() == [f"{source}: console.log: {text}"]

    call = {"from": FIRST, "to": PRINTS, "data": data}
    for method in ("eth_call", "eth_estimateGas"):
        assert "error" not in asked(w3, method, call)
        assert lines() == [f"{method}: console.log: {text}"]


def test_damaged_messages_are_shown_without_what_is_missing(
    chain: EmbeddedChain, w3: Any, lines: Any
) -> None:
    whole = printing("log(string)", "hello")
    for data in (whole[:10], whole[:74], whole[:138], "0x41304fac" + "ff" * 64, "0x", "0x4130"):
        sent(chain, w3, PRINTS, data)
    texts = [line.partition(": console.log: ")[2] for line in lines()]
    assert texts == ["", "", "", "", "0x", "0x4130"]


def test_long_and_many_messages_are_cut(chain: EmbeddedChain, w3: Any, lines: Any) -> None:
    sent(chain, w3, PRINTS, printing("log(string)", "x" * 10_000))
    (line,) = lines()
    assert 1_000 < line.count("x") < 2_100
    sent(chain, w3, PRINTS_MORE, printing("log(uint256)", 5))
    assert [line.rpartition(" ")[2] for line in lines()] == ["5"] * 100


def test_a_block_prints_a_limited_number(chain: EmbeddedChain, w3: Any, lines: Any) -> None:
    tx = {"from": FIRST, "to": Web3.to_checksum_address(PRINTS_MORE), "gas": GAS}
    data = printing("log(uint256)", 5)
    hashes = [w3.eth.send_transaction({**tx, "data": data}) for _ in range(12)]
    chain.produce()
    assert {w3.eth.get_transaction_receipt(each)["blockNumber"] for each in hashes} == {
        w3.eth.block_number
    }
    assert len(lines()) == 1_000


ERROR = printing("Error(string)", "nothing to add")
CUSTOM = "0x" + "12345678" + "00" * 31 + "05"
PANIC = printing("Panic(uint256)", 0x11)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (ERROR, "execution reverted: nothing to add"),
        (PANIC, "execution reverted: arithmetic underflow or overflow"),
        (CUSTOM, f"execution reverted: {CUSTOM}"),
        ("0x", "execution reverted"),
        (printing("Error(string)", "a\nb"), "execution reverted: a\\nb"),
        ("0x" + "ab" * 400, "execution reverted: 0x" + "ab" * 256),
    ],
)
def test_a_failed_transaction_has_its_reason(
    chain: EmbeddedChain, w3: Any, lines: Any, data: str, text: str
) -> None:
    receipt = sent(chain, w3, REVERTS, data)
    assert receipt["status"] == 0
    tx = receipt["transactionHash"].to_0x_hex()
    printed, failed = lines()
    assert printed.startswith(f"transaction {tx}: console.log: ")
    assert failed == f"transaction {tx} failed: {text}"
    by_hash = asked(w3, "eth_getTransactionReceipt", tx)["result"]
    (in_block,) = asked(w3, "eth_getBlockReceipts", hex(receipt["blockNumber"]))["result"]
    assert by_hash["revertReason"] == in_block["revertReason"] == data


def test_other_receipts_have_no_reason(chain: EmbeddedChain, w3: Any, lines: Any) -> None:
    tx_hash = sent(chain, w3, LOOPS, "0x")["transactionHash"].to_0x_hex()
    assert lines() == [f"transaction {tx_hash} failed: out of gas"]
    good = sent(chain, w3, PRINTS, "0x")["transactionHash"].to_0x_hex()
    # Data of more than 4 KiB is not stored.
    address = Web3.to_checksum_address(REVERTS)
    tx = {"from": FIRST, "to": address, "data": "0x" + "00" * 4_097, "gas": 10**6}
    long = settled(chain, w3, tx)["transactionHash"].to_0x_hex()
    for each in (tx_hash, good, long):
        receipt = asked(w3, "eth_getTransactionReceipt", each)["result"]
        assert "revertReason" not in receipt


def test_the_reason_survives_a_restart(tmp_path: Path) -> None:
    app = dev_app(tmp_path)
    with closing(chain_of(app)) as chain, serve(app) as url:
        w3 = Web3(HTTPProvider(f"{url}/evm"))
        asked(w3, "anvil_setCode", REVERTS, CODES[REVERTS])
        tx = sent(chain, w3, REVERTS, ERROR)["transactionHash"].to_0x_hex()
    # A chain that is no longer a development chain has the stored reason, too.
    app = dev_app(tmp_path, dev=False)
    with closing(chain_of(app)), serve(app) as url:
        receipt = asked(Web3(HTTPProvider(f"{url}/evm")), "eth_getTransactionReceipt", tx)
    assert receipt["result"]["revertReason"] == ERROR


def test_other_chains_log_and_store_no_reasons(tmp_path: Path, lines: Any) -> None:
    app = dev_app(tmp_path)
    with closing(chain_of(app)) as chain, serve(app) as url:
        w3 = Web3(HTTPProvider(f"{url}/evm"))
        asked(w3, "anvil_setCode", REVERTS, CODES[REVERTS])
        fields = {"from": FIRST, "to": REVERTS, "data": ERROR, "gas": hex(GAS)}
        raw = asked(w3, "eth_signTransaction", {**fields, "nonce": "0x0"})["result"]["raw"]
    app = dev_app(tmp_path, dev=False)
    with closing(chain_of(app)) as chain, serve(app) as url:
        w3 = Web3(HTTPProvider(f"{url}/evm"))
        lines()
        tx = asked(w3, "eth_sendRawTransaction", raw)["result"]
        chain.produce()
        asked(w3, "eth_call", {"to": REVERTS, "data": ERROR})
        receipt = asked(w3, "eth_getTransactionReceipt", tx)["result"]
    assert (receipt["status"], "revertReason" in receipt) == ("0x0", False)
    assert lines() == []
