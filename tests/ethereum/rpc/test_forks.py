"""Tests of forks: each block has the rules of its own height, and settings change no past."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.errors import ConfigurationError
from flask_noderpc.ethereum.application.state import ChainRules
from flask_noderpc.ethereum.domain.forks import (
    BPO1,
    CANCUN,
    HISTORY_ADDRESS,
    LONDON,
    OSAKA,
    PRAGUE,
    Activation,
    Fork,
)
from tests.ethereum.protocol.signing import OTHER

from .contracts import alloc
from .dev.fixtures import FIRST, chain_of, dev_app
from .evm_node import Running, tx

# A contract that returns the number of leading zeros of 1: CLZ, 255.
CLZ = "0x" + "c1" * 20
CODE = "0x60011e5f5260205ff3"
STATE = {"alloc": alloc() | {CLZ: {"code": CODE}}}
HISTORY = f"0x{HISTORY_ADDRESS.hex()}"


@contextmanager
def running(folder: Path, forks: ChainRules | None = None, **more: Any) -> Iterator[Running]:
    node = Running(folder, app_state=STATE, forks=forks, **more)
    with closing(node):
        yield node


def clz(node: Running, block: str = "latest") -> int | str:
    """Return the number of zeros, or the error."""
    reply = node.reply("eth_call", ({"to": CLZ}, block))
    return int(reply["result"], 16) if "result" in reply else str(reply["error"]["message"])


def test_a_new_chain_has_the_rules_of_osaka(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        assert clz(node) == 255


def test_an_instruction_of_a_later_fork_is_named(tmp_path: Path) -> None:
    with running(tmp_path, ChainRules(PRAGUE)) as node:
        assert clz(node) == (
            "invalid opcode: CLZ, which is defined from osaka on; this block has the rules of"
            " prague: see NODERPC_EVM_HARDFORK and NODERPC_EVM_FORKS"
        )


def test_each_block_is_executed_and_traced_by_its_own_rules(tmp_path: Path) -> None:
    scheduled = ChainRules(PRAGUE, (Activation(3, OSAKA), Activation(9, BPO1)))
    with running(tmp_path, scheduled) as node:
        receipts = [node.mine(tx(nonce, to=CLZ, value=0, gas=90_000))[0] for nonce in range(3)]
        assert [each["status"] for each in receipts] == ["0x0", "0x0", "0x1"]
        assert [int(each["gasUsed"], 16) for each in receipts][:2] == [90_000, 90_000]
        assert clz(node) == 255
        assert str(clz(node, "0x2")).startswith("invalid opcode: CLZ")
        for receipt, failed in zip(receipts, (True, True, False), strict=True):
            trace = node.ask("debug_traceTransaction", receipt["transactionHash"])
            assert trace["failed"] is failed
        found = node.ask("eth_config")
        assert (found["current"]["blobSchedule"]["max"], found["next"], found["last"]) == (
            9,
            found["last"],
            found["next"],
        )
        assert found["next"]["blobSchedule"]["max"] == 15
        block = node.ask("eth_getBlockByNumber", "0x3", False)
        assert found["current"]["activationTime"] == int(block["timestamp"], 16)
        # One block a second.
        assert found["next"]["activationTime"] == int(block["timestamp"], 16) + 6
        ids = {each["forkId"] for each in (found["current"], found["next"])}
        assert len(ids) == 2


def test_the_store_remembers_the_forks(tmp_path: Path) -> None:
    with running(tmp_path, ChainRules(PRAGUE)) as node:
        node.mine(tx())
    # Another first fork changes nothing, and a later height is added.
    later = ChainRules(CANCUN, (Activation(3, OSAKA),))
    with running(tmp_path, later) as node:
        node.mine(tx(1))
        assert str(clz(node)).startswith("invalid opcode: CLZ")
    # The setting is gone, and the fork begins.
    with running(tmp_path) as node:
        node.mine(tx(2))
        assert clz(node) == 255
        assert str(clz(node, "0x2")).startswith("invalid opcode: CLZ")
        assert clz(node, "pending") == 255


def test_calls_of_the_next_block_have_its_fork_before_it_is_recorded(tmp_path: Path) -> None:
    with running(tmp_path, ChainRules(PRAGUE)) as node:
        node.mine(tx())
    with running(tmp_path, ChainRules(PRAGUE, (Activation(2, OSAKA),))) as node:
        assert str(clz(node)).startswith("invalid opcode: CLZ")
        assert clz(node, "pending") == 255
        assert node.ask("eth_config")["next"]["precompiles"]["P256VERIFY"]
        # The fork of an overridden number.
        other = node.ask("eth_call", {"to": CLZ}, "latest", None, {"number": "0x5"})
        assert int(other, 16) == 255


def test_a_fork_can_be_moved_before_it_begins(tmp_path: Path) -> None:
    with running(tmp_path, ChainRules(PRAGUE, (Activation(9, OSAKA),))) as node:
        node.mine(tx())
    with running(tmp_path, ChainRules(PRAGUE, (Activation(2, OSAKA),))) as node:
        node.mine(tx(1))
        assert clz(node) == 255
    # After the fork has begun, the setting still agrees with the store.
    with running(tmp_path, ChainRules(PRAGUE, (Activation(2, OSAKA),))) as node:
        assert clz(node) == 255


def test_a_fork_can_t_begin_at_a_block_that_exists(tmp_path: Path) -> None:
    with running(tmp_path, ChainRules(PRAGUE)) as node:
        node.mine(tx())
        node.mine(tx(1))
    late = ChainRules(PRAGUE, (Activation(2, OSAKA),))
    with (
        pytest.raises(ConfigurationError, match="at least 3 for osaka, got 2"),
        running(tmp_path, late),
    ):
        pass


@pytest.mark.parametrize("fork", [PRAGUE, OSAKA])
def test_a_later_fork_follows_the_first(tmp_path: Path, fork: Fork) -> None:
    text = f"expected a fork after osaka, which the chain has, got {fork.name}"
    with (
        pytest.raises(ConfigurationError, match=text),
        running(tmp_path, ChainRules(OSAKA, (Activation(5, fork),))),
    ):
        pass


def test_a_fork_that_another_host_did_not_schedule_is_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path, ChainRules(PRAGUE)) as node:
        node.mine(tx())
        with running(tmp_path, ChainRules(PRAGUE, (Activation(3, OSAKA),))) as other:
            other.send(tx(1))
            # The host without the setting produces the blocks at which the fork should begin.
            for _ in range(3):
                node.mine()
            other.send(tx(2))
            assert str(clz(other)).startswith("invalid opcode: CLZ")
    assert "NODERPC_EVM_FORKS is ignored: expected a height of at least 5" in caplog.text


@pytest.mark.sqlite
def test_a_store_without_a_record_of_forks_goes_on_with_prague(tmp_path: Path) -> None:
    with running(tmp_path, ChainRules(PRAGUE)) as node:
        (receipt,) = node.mine(tx(to=CLZ, value=0, gas=90_000))
        trace = node.ask("debug_traceTransaction", receipt["transactionHash"])
    with closing(sqlite3.connect(tmp_path / "noderpc.db")) as store, store:
        (removed,) = store.execute(
            "DELETE FROM app_state WHERE key = ? RETURNING 1", (b"evm:forks",)
        ).fetchone()
        assert removed
    with running(tmp_path) as node:
        assert str(clz(node)).startswith("invalid opcode: CLZ")
        assert trace == node.ask("debug_traceTransaction", receipt["transactionHash"])
        (receipt,) = node.mine(tx(1, to=CLZ, value=0, gas=90_000))
        assert receipt["status"] == "0x0"


def authorized() -> dict[str, Any]:
    other = OTHER.sign_authorization({"chainId": 0, "address": CLZ, "nonce": 0})
    return {"type": 4, "authorizationList": [other], "gas": 100_000}


def test_types_of_later_forks_are_refused(tmp_path: Path) -> None:
    with running(tmp_path, ChainRules(LONDON)) as node:
        refused = node.refused(tx(**authorized()))
        assert refused.startswith("transaction type not supported: type 4 rejected")
        (receipt,) = node.mine(tx())
        assert receipt["status"] == "0x1"
    folder = tmp_path / "prague"
    folder.mkdir()
    with running(folder, ChainRules(PRAGUE)) as node:
        (receipt,) = node.mine(tx(**authorized()))
        assert receipt["status"] == "0x1"


@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_development_chain_caps_the_gas_of_a_transaction_if_enabled(
    tmp_path: Path, is_enabled: bool
) -> None:
    cap, app = (
        1 << 24,
        dev_app(tmp_path, evm_enable_tx_gas_limit=is_enabled, evm_gas_cap=1 << 27),
    )

    def ask(method: str, *params: Any) -> dict[str, Any]:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply: dict[str, Any] = app.test_client().post("/evm", json=call).get_json()
        return reply

    with closing(chain_of(app)) as chain:
        ask("evm_setBlockGasLimit", hex(3 * cap))
        # The first block with this limit.
        chain.produce()
        tx = {"from": FIRST, "to": CLZ, "gas": hex(cap)}
        assert "result" in ask("eth_sendTransaction", tx)
        # Code that needs all gas: JUMPDEST, PUSH0, JUMP.
        endless = ask("eth_estimateGas", {"data": "0x5b5f56"}, "pending")["error"]["message"]
        limit = cap if is_enabled else 3 * cap
        assert endless == f"gas required exceeds allowance ({limit})"
        reply = ask("eth_sendTransaction", tx | {"gas": hex(cap + 1)})
        if is_enabled:
            text = f"transaction gas limit too high (cap: {cap}, tx: {cap + 1})"
            assert reply["error"]["message"] == text
        else:
            chain.produce()
            receipt = ask("eth_getTransactionReceipt", reply["result"])["result"]
            assert receipt["status"] == "0x1"


def test_a_development_chain_keeps_the_hashes_of_its_blocks(tmp_path: Path) -> None:
    with running(tmp_path, dev=True) as node:
        assert node.ask("eth_getCode", HISTORY, "0x0").startswith("0x3373ff")
        node.mine(tx())
        # Two empty blocks, which are made without the engine.
        for _ in range(2):
            node.mine()
        node.mine(tx(1))
        for height in (1, 2, 3):
            block_hash = node.ask("eth_getBlockByNumber", hex(height), False)["hash"]
            found = node.ask("eth_getStorageAt", HISTORY, hex(height), "latest")
            assert found == block_hash
            data = f"0x{height:064x}"
            assert node.ask("eth_call", {"to": HISTORY, "data": data}, "latest") == block_hash
        # The block itself is not in its own state.
        assert int(node.ask("eth_getStorageAt", HISTORY, "0x4", "latest"), 16) == 0
        contracts = node.ask("eth_config")["current"]["systemContracts"]
        assert contracts == {"HISTORY_STORAGE_ADDRESS": HISTORY}


def test_another_chain_has_no_system_contract(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        assert node.ask("eth_getCode", HISTORY, "latest") == "0x"
        before = node.ask("eth_getBlockByNumber", "latest", False)["stateRoot"]
        node.mine()
        assert node.ask("eth_getBlockByNumber", "latest", False)["stateRoot"] == before
