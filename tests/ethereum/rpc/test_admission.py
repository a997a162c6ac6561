"""Tests that a chain accepts transactions by the same rules on every way in."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc import EmbeddedChain
from flask_noderpc.ethereum.protocol.execution import created_address
from flask_noderpc.protocol.secp256k1eth import keccak
from tests.ethereum.protocol.signing import ACCOUNT, CHAIN_ID, OTHER, TO, sender, signed

from .contracts import GWEI, alloc
from .dev.fixtures import FIRST, chain_of, dev_app
from .evm_node import Running

ME = f"0x{sender().hex()}"


class Client:
    """A chain behind HTTP, and its two ways to send transactions."""

    def __init__(self, http: FlaskClient, chain: EmbeddedChain) -> None:
        self._http, self.chain = http, chain

    def reply(self, path: str, method: str, params: Any) -> dict[str, Any]:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        found: dict[str, Any] = self._http.post(path, json=call).get_json()
        return found

    def ask(self, method: str, *params: Any) -> Any:
        """Return the result, or the error's text."""
        reply = self.reply("/evm", method, params)
        return reply["result"] if "result" in reply else reply["error"]["message"]

    def send(self, raw: bytes) -> Any:
        return self.ask("eth_sendRawTransaction", f"0x{raw.hex()}")

    def broadcast(self, raw: bytes) -> str:
        """Return the log of the check, empty if the transaction was accepted."""
        reply = self.reply("/", "broadcast_tx_sync", {"tx": b64encode(raw).decode()})
        found: str = reply["result"]["log"]
        return found

    def receipt(self, tx_hash: str) -> Any:
        return self.ask("eth_getTransactionReceipt", tx_hash)


@contextmanager
def running(folder: Path, **settings: Any) -> Iterator[Client]:
    app = dev_app(folder, evm_api="eth,debug", evm_executors=1, **settings)
    try:
        yield Client(app.test_client(), chain_of(app))
    finally:
        chain_of(app).close()


@contextmanager
def of_no_development(folder: Path, **settings: Any) -> Iterator[Client]:
    """Run a chain without development accounts; ``OTHER`` has code in its genesis."""
    accounts = alloc()
    accounts[f"0x{sender(OTHER).hex()}"]["code"] = "0x00"
    Running(folder, app_state={"alloc": accounts}).close()
    with running(folder, dev=False, **settings) as client:
        yield client


def fees(nonce: int = 0, **more: Any) -> dict[str, Any]:
    """Return a transaction's members, with the chain ID."""
    paid = {"maxFeePerGas": 5 * GWEI, "maxPriorityFeePerGas": GWEI}
    fields = {"nonce": nonce, "gas": 21_000, "to": TO, "value": 1, "chainId": CHAIN_ID}
    return {"type": 2, **fields, **paid, **more}


def unprotected(nonce: int = 0) -> bytes:
    """Return a transaction without a chain ID, as before EIP-155."""
    fields = {"nonce": nonce, "gas": 21_000, "to": TO, "value": 1, "gasPrice": 5 * GWEI}
    return signed(fields)


def creating(size: int, *, nonce: int = 0, initcode: int = 0) -> bytes:
    """Return a transaction that creates a contract of ``size`` bytes, from init code of
    ``initcode`` bytes."""
    code = bytes.fromhex("62") + size.to_bytes(3) + bytes.fromhex("5ff3")
    return signed(fees(nonce, to="", value=0, gas=14_000_000, data=code.ljust(initcode, b"\0")))


_PROTECTED_ONLY = "only replay-protected (EIP-155) transactions allowed over RPC"


def test_transactions_without_a_chain_id_are_refused_on_both_ways(tmp_path: Path) -> None:
    with of_no_development(tmp_path) as client:
        assert client.send(unprotected()) == _PROTECTED_ONLY
        assert client.broadcast(unprotected()) == _PROTECTED_ONLY


def test_a_setting_takes_transactions_without_a_chain_id(tmp_path: Path) -> None:
    with of_no_development(tmp_path, evm_allow_unprotected_txs=True) as client:
        hashes = [f"0x{keccak(unprotected(nonce)).hex()}" for nonce in range(2)]
        assert client.send(unprotected(0)) == hashes[0]
        assert client.broadcast(unprotected(1)) == ""
        client.chain.produce()
        block = client.ask("eth_getBlockByNumber", "0x1", True)
        assert [tx["hash"] for tx in block["transactions"]] == hashes
        assert [tx.get("chainId") for tx in block["transactions"]] == [None, None]
        assert [client.receipt(tx_hash)["status"] for tx_hash in hashes] == ["0x1", "0x1"]


def test_a_development_chain_takes_them(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.ask("anvil_setBalance", ME, hex(10**18))
        client.chain.produce()
        tx_hash = client.send(unprotected())
        client.chain.produce()
        assert client.receipt(tx_hash)["status"] == "0x1"


def test_an_account_with_code_sends_nothing(tmp_path: Path) -> None:
    with of_no_development(tmp_path) as client:
        raw = signed(fees(), OTHER)
        text = f"sender not an eoa: address 0x{sender(OTHER).hex()}"
        assert client.send(raw) == text
        assert client.broadcast(raw) == text
        # EIP-7702: an account with delegated code can still sign with its key.
        authorization = ACCOUNT.sign_authorization(
            {"chainId": CHAIN_ID, "address": TO, "nonce": 1}
        )
        lends = fees(type=4, gas=100_000, authorizationList=[authorization])
        client.send(signed(lends))
        client.chain.produce()
        assert client.ask("eth_getCode", ME, "latest") == f"0xef0100{TO[2:].lower()}"
        tx_hash = client.send(signed(fees(2)))
        client.chain.produce()
        assert client.receipt(tx_hash)["status"] == "0x1"


def test_on_a_development_chain_an_account_with_code_sends(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.ask("anvil_setCode", FIRST, "0x00")
        client.chain.produce()
        sent = client.ask("eth_sendTransaction", {"from": FIRST, "to": TO, "value": "0x1"})
        client.chain.produce()
        assert client.receipt(sent)["status"] == "0x1"
        # Traces execute what the block executed.
        traced = client.ask("debug_traceTransaction", sent, {"tracer": "callTracer"})
        assert (traced["from"], traced["value"]) == (FIRST.lower(), "0x1")


def test_a_block_has_nine_blobs_at_most(tmp_path: Path) -> None:
    with of_no_development(tmp_path) as client:
        hashes = [b"\1" + bytes(31)] * 5
        for nonce in range(2):
            blobs = {"type": 3, "maxFeePerBlobGas": 9, "blobVersionedHashes": hashes}
            assert client.broadcast(signed(fees(nonce, **blobs))) == ""
        for number in "0x1", "0x2":
            client.chain.produce()
            block = client.ask("eth_getBlockByNumber", number, True)
            assert [int(tx["nonce"], 16) for tx in block["transactions"]] == [
                int(number, 16) - 1
            ]


@pytest.mark.parametrize("limit", [100, 60_000])
def test_a_contract_has_as_much_code_as_the_setting_allows(tmp_path: Path, limit: int) -> None:
    with of_no_development(tmp_path, evm_code_size_limit=limit) as client:
        account = {"from": ME}
        fits, long = creating(limit), creating(limit + 1, nonce=1)
        for raw in fits, long:
            client.send(raw)
            client.chain.produce()
        assert client.receipt(f"0x{keccak(fits).hex()}")["status"] == "0x1"
        assert client.receipt(f"0x{keccak(long).hex()}")["status"] == "0x0"
        created = f"0x{created_address(sender(), 0).hex()}"
        assert len(client.ask("eth_getCode", created, "latest")) == 2 + 2 * limit
        # Calls and traces have the same limit.
        init = {"data": f"0x62{limit + 1:06x}5ff3", "gas": hex(14_000_000)}
        assert client.ask("eth_call", account | init) == "max code size exceeded"
        init = {"data": f"0x62{limit:06x}5ff3", "gas": hex(14_000_000)}
        assert len(client.ask("eth_call", account | init)) == 2 + 2 * limit
        traced = client.ask(
            "debug_traceTransaction", f"0x{keccak(long).hex()}", {"tracer": "callTracer"}
        )
        assert traced["error"] == "max code size exceeded"


def test_code_that_creates_has_twice_as_many_bytes(tmp_path: Path) -> None:
    with of_no_development(tmp_path, evm_code_size_limit=60_000) as client:
        longest = creating(1, initcode=120_000)
        assert client.send(longest) == f"0x{keccak(longest).hex()}"
        text = "max initcode size exceeded: code size 120001, limit 120000"
        long = creating(1, nonce=1, initcode=120_001)
        assert client.send(long) == text
        assert client.broadcast(long) == text
        client.chain.produce()
        assert client.receipt(f"0x{keccak(longest).hex()}")["status"] == "0x1"
        call = {"from": ME, "gas": hex(14_000_000), "data": f"0x{bytes(120_001).hex()}"}
        assert client.ask("eth_call", call) == f"err: {text} (supplied gas 14000000)"
        blocks = {"blockStateCalls": [{"calls": [call]}]}
        assert client.ask("eth_simulateV1", blocks) == text
        # CREATE by running code: PUSH0, PUSH3 size, PUSH0, PUSH0, CREATE.
        nested = {**call, "data": "0x5f" + "62" + f"{120_001:06x}" + "5f5f" + "f0"}
        assert client.ask("eth_call", nested) == (
            "out of gas: max initcode size exceeded: size 120001"
        )


def test_receipts_of_what_has_not_run_are_null(tmp_path: Path) -> None:
    with of_no_development(tmp_path) as client:
        client.send(signed(fees()))
        assert client.ask("eth_getBlockByNumber", "pending", False)["transactions"]
        assert client.ask("eth_getBlockReceipts", "pending") is None
        client.chain.produce()
        assert len(client.ask("eth_getBlockReceipts", "latest")) == 1


def test_what_the_stipend_pays_for_is_no_write(tmp_path: Path) -> None:
    text = "out of gas: not enough gas for reentrancy sentry"
    with running(tmp_path) as client:
        client.ask("anvil_setCode", TO, "0x600160015500")
        client.chain.produce()
        # After two PUSH1, exactly the stipend is left.
        call = {"from": FIRST, "to": TO, "gas": hex(21_000 + 6 + 2_300)}
        assert client.ask("eth_call", call) == text
        assert client.ask("eth_estimateGas", call) == "gas required exceeds allowance (23306)"
        config = {"tracer": "callTracer"}
        assert client.ask("debug_traceCall", call, "latest", config)["error"] == text
        steps = client.ask("debug_traceCall", call, "latest", {})["structLogs"]
        assert (steps[-1]["op"], steps[-1]["error"]) == ("SSTORE", text)
        more = {**call, "gas": hex(21_000 + 6 + 2_301)}
        assert client.ask("eth_call", more) == "out of gas"


def test_a_contract_begins_at_no_address_that_has_code(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        at = created_address(bytes.fromhex(FIRST[2:]), 0)
        client.ask("anvil_setCode", f"0x{at.hex()}", "0x60")
        client.chain.produce()
        call = {"from": FIRST, "data": "0x6000", "gas": hex(100_000)}
        assert client.ask("eth_call", call) == "contract address collision"
        sent = client.ask("eth_sendTransaction", call)
        client.chain.produce()
        receipt = client.receipt(sent)
        assert (receipt["status"], receipt["gasUsed"]) == ("0x0", hex(100_000))
        traced = client.ask("debug_traceTransaction", sent, {"tracer": "callTracer"})
        assert traced["error"] == "contract address collision"
