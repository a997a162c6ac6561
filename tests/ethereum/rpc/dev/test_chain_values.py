"""Tests of the chain ID and of PREVRANDAO, which a development chain records in its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import rlp
from eth_account import Account
from web3 import HTTPProvider, Web3

from flask_noderpc import EmbeddedChain
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.ethereum.application.state import EvmHead
from flask_noderpc.testing.node import serve

from .fixtures import FIRST, STRANGER, asked, chain_of, dev_app, settled

# The first development account's private key.
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
# CHAINID, PUSH0, MSTORE, PREVRANDAO, PUSH1 32, MSTORE, PUSH1 64, PUSH0, RETURN: the chain ID
# and PREVRANDAO, as the result of a call or as the code of a new contract.
VALUES = "0x465f524460205260405ff3"
RANDAO = "0x" + "ab" * 32


def done(w3: Any, method: str, *params: Any) -> Any:
    """Return the result of a call that succeeds."""
    answer = asked(w3, method, *params)
    assert "error" not in answer, answer
    return answer["result"]


def values(data: str) -> tuple[int, int]:
    return int(data[2:66], 16), int(data[66:130], 16)


def deployed(chain: EmbeddedChain, w3: Any) -> Any:
    """Return the receipt of a new contract, whose code has the values of its block."""
    return settled(chain, w3, {"from": FIRST, "data": VALUES})


def seen(w3: Any, receipt: Any) -> tuple[int, int]:
    """Return the values in a contract's code, which a trace of its creation shows, too."""
    code = done(w3, "eth_getCode", receipt["contractAddress"], "latest")
    tx = "0x" + receipt["transactionHash"].hex()
    trace = done(w3, "debug_traceTransaction", tx, {"tracer": "callTracer"})
    assert trace["output"] == code
    return values(code)


def signed(w3: Any, chain_id: int) -> str:
    tx = {"to": STRANGER, "gas": 21_000, "gasPrice": 3 * 10**9, "chainId": chain_id}
    nonce = w3.eth.get_transaction_count(FIRST)
    raw: str = Account.sign_transaction({**tx, "nonce": nonce}, KEY).raw_transaction.to_0x_hex()
    return raw


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = dev_app(tmp_path_factory.mktemp("dev"), evm_api=("eth", "net", "debug"))
    yield made
    chain_of(made).close()


def test_the_chain_id_changes_for_later_blocks(chain: EmbeddedChain, w3: Any) -> None:
    before = done(w3, "evm_snapshot")
    old = deployed(chain, w3)
    height = w3.eth.block_number
    done(w3, "anvil_setChainId", 4242)

    assert done(w3, "eth_chainId") == hex(4242)
    assert done(w3, "net_version") == done(w3, "eth_networkId") == "4242"
    assert values(done(w3, "eth_call", {"data": VALUES}))[0] == 4242
    assert values(done(w3, "eth_call", {"data": VALUES}, hex(height)))[0] == 31337
    refused = asked(w3, "eth_sendRawTransaction", signed(w3, 31337))["error"]["message"]
    assert refused == "invalid chain id for signer: have 31337 want 4242"
    sent = done(w3, "eth_sendRawTransaction", signed(w3, 4242))
    chain.produce()
    assert w3.eth.get_transaction_receipt(sent)["status"] == 1
    assert seen(w3, deployed(chain, w3)) == (4242, 0)
    # The trace of the earlier block has its own chain ID.
    assert seen(w3, old) == (31337, 0)

    assert done(w3, "evm_revert", before) is True
    assert done(w3, "eth_chainId") == hex(31337)


def test_a_rollback_restores_the_chain_id(w3: Any) -> None:
    done(w3, "anvil_setChainId", "0x7")
    assert done(w3, "eth_chainId") == "0x7"
    done(w3, "anvil_rollback", 1)
    assert done(w3, "eth_chainId") == hex(31337)


def test_pending_transactions_of_the_old_chain_id_are_dropped(
    chain: EmbeddedChain, w3: Any
) -> None:
    before = done(w3, "evm_snapshot")
    tx = done(w3, "eth_sendRawTransaction", signed(w3, 31337))
    done(w3, "anvil_setChainId", 4242)
    chain.produce()
    assert done(w3, "eth_getTransactionByHash", tx) is None
    done(w3, "evm_revert", before)


@contextmanager
def opened(folder: Path, **settings: Any) -> Iterator[Any]:
    app = dev_app(folder, **settings)
    with closing(chain_of(app)), serve(app) as url:
        yield Web3(HTTPProvider(f"{url}/evm"))


def test_each_process_and_a_restart_have_the_recorded_chain_id(tmp_path: Path) -> None:
    with opened(tmp_path) as w3:
        assert done(w3, "eth_chainId") == hex(31337)
        done(w3, "anvil_setChainId", 5)
        with opened(tmp_path) as other:
            assert done(other, "eth_chainId") == "0x5"
    # The setting is the chain ID with which the chain began, and the chain keeps its own.
    for settings in ({}, {"evm_chain_id": 31337}, {"dev": False}):
        with opened(tmp_path, **settings) as w3:
            assert done(w3, "eth_chainId") == "0x5"
    refused = "expected 31337, with which the chain began"
    with (
        closing(chain_of(dev_app(tmp_path, evm_chain_id=5))) as chain,
        pytest.raises(ConfigurationError, match=refused),
    ):
        chain.start()


def old_record(head: EvmHead) -> bytes:
    """Return the record of a block as earlier versions wrote it, which had a sixth item only
    after setCoinbase."""
    numbers = head.base_fee, head.gas_used, head.gas_limit
    return bytes(rlp.encode([head.height, head.root, *numbers]))


def test_a_chain_that_records_no_chain_id_has_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(EvmHead, "encode", old_record)
        with opened(tmp_path) as w3:
            done(w3, "anvil_mine")
    with opened(tmp_path) as w3:
        assert done(w3, "eth_chainId") == hex(9000)
        assert values(done(w3, "eth_call", {"data": VALUES})) == (9000, 0)
    with opened(tmp_path, evm_chain_id=4) as w3:
        assert done(w3, "eth_chainId") == "0x4"
        sent = done(w3, "eth_sendRawTransaction", signed(w3, 4))
        assert done(w3, "anvil_mine") is None
        assert w3.eth.get_transaction_receipt(sent)["status"] == 1
        done(w3, "anvil_setChainId", 5)
    with opened(tmp_path) as w3:
        assert done(w3, "eth_chainId") == "0x5"


@pytest.mark.parametrize("number", [0, 1 << 53, -1, "x"])
def test_invalid_chain_ids_are_refused(w3: Any, number: Any) -> None:
    height = w3.eth.block_number
    assert "error" in asked(w3, "anvil_setChainId", number)
    assert w3.eth.block_number == height


@pytest.mark.parametrize(
    ("method", "result"),
    [("hardhat_setPrevRandao", True), ("anvil_setNextBlockPrevRandao", None)],
)
def test_the_next_block_has_the_randao(
    chain: EmbeddedChain, w3: Any, method: str, result: Any
) -> None:
    assert done(w3, method, RANDAO) is result
    # A block that only changes the state passes the value on.
    done(w3, "anvil_setBalance", STRANGER, "0x1")
    assert done(w3, "eth_getBlockByNumber", "pending", False)["mixHash"] == RANDAO
    assert values(done(w3, "eth_call", {"data": VALUES}, "pending"))[1] == int(RANDAO, 16)

    first, second = deployed(chain, w3), deployed(chain, w3)
    assert seen(w3, first) == (31337, int(RANDAO, 16))
    assert seen(w3, second) == (31337, 0)
    assert w3.eth.get_block(first["blockNumber"])["mixHash"].to_0x_hex() == RANDAO
    assert w3.eth.get_block(second["blockNumber"])["mixHash"].to_0x_hex() == "0x" + "00" * 32


def test_the_first_of_the_mined_blocks_has_the_randao(w3: Any) -> None:
    done(w3, "hardhat_setPrevRandao", RANDAO)
    first = w3.eth.block_number + 1
    done(w3, "anvil_mine", 3)
    found = [w3.eth.get_block(first + place)["mixHash"].to_0x_hex() for place in range(3)]
    assert found == [RANDAO, "0x" + "00" * 32, "0x" + "00" * 32]


def test_a_fork_before_paris_has_no_randao(tmp_path: Path) -> None:
    with opened(tmp_path, evm_hardfork="london") as w3:
        error = asked(w3, "hardhat_setPrevRandao", RANDAO)["error"]["message"]
    assert error == "PREVRANDAO begins with the fork Paris, and this chain has london"
