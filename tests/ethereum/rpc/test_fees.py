"""Tests of gas prices, which follow from the base fees and tips of the latest blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain, MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.ethereum.domain.records import Header
from flask_noderpc.ethereum.ethermint_double import EthermintDouble
from flask_noderpc.ethereum.protocol.blocks import fee_after
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for
from tests.ethereum.protocol.signing import transfer

from .chain import ethereum_chain

GWEI = 10**9
HISTORY = "eth_feeHistory"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedChain]:
    made = ethereum_chain(tmp_path_factory.mktemp("fees"))
    yield made
    made.close()


def ask(chain: Any, method: str, *params: Any) -> Any:
    client = app_for(chain, json_rpc_enable=True).test_client()
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    reply = client.post("/evm", json=call).get_json()
    return reply["result"] if "result" in reply else reply["error"]


def header(fee: int | None, used: int, limit: int = 30_000_000) -> Header:
    zeros = bytes(32)
    return Header(
        number=1,
        hash=zeros,
        parent_hash=zeros,
        transactions_root=zeros,
        state_root=zeros,
        receipts_root=zeros,
        miner=bytes(20),
        gas_limit=limit,
        gas_used=used,
        timestamp=1,
        base_fee=fee,
    )


# Example vectors of EIP-1559.
@pytest.mark.parametrize(
    ("fee", "used", "limit", "following"),
    [
        (GWEI, 10_000_000, 20_000_000, GWEI),
        (GWEI, 9_000_000, 20_000_000, 987_500_000),
        (GWEI, 11_000_000, 20_000_000, 1_012_500_000),
        (GWEI, 0, 20_000_000, 875_000_000),
        (7, 10_000_001, 20_000_000, 8),
        (None, 5, 20_000_000, None),
        (GWEI, 5, 0, GWEI),
    ],
)
def test_the_base_fee_follows_how_full_a_block_was(
    fee: int | None, used: int, limit: int, following: int | None
) -> None:
    assert fee_after(header(fee, used, limit)) == following


def fees_of(chain: Any) -> tuple[int, int]:
    """Return the base fee and the tip, and check that the price is their sum."""
    names = "eth_baseFee", "eth_maxPriorityFeePerGas", "eth_gasPrice"
    fee, tip, price = (int(ask(chain, name), 16) for name in names)
    assert price == fee + tip
    return fee, tip


def test_without_tips_the_suggestion_goes_by_the_base_fee(tmp_path: Path) -> None:
    with closing(EmbeddedChain(tmp_path / "chain.db", application=EthermintDouble)) as made:
        made.produce()
        fee, tip = fees_of(made)

    assert 0 < fee <= GWEI
    assert tip == fee // 8


def block_of_tips(chain: EmbeddedChain, first: int, *tips: int) -> None:
    for nonce, tip in enumerate(tips, first):
        fees: dict[str, Any] = {"maxPriorityFeePerGas": tip, "maxFeePerGas": 10**12 + tip}
        chain.mempool.submit(transfer(nonce, **fees))
    chain.produce()


def test_a_suggested_tip_is_that_of_the_latest_blocks(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with closing(EmbeddedChain(path, application=EthermintDouble, produce=False)) as made:
        made.start()
        # Only the three lowest tips of a block are sampled; tips below 2 wei are ignored.
        block_of_tips(made, 0, 9 * GWEI, 3 * GWEI, 8 * GWEI, 1, 4 * GWEI)
        assert fees_of(made)[1] == 4 * GWEI
        block_of_tips(made, 5, 5 * GWEI, 6 * GWEI)
        # The median of 3, 4, 5, 6 and 8 gwei.
        assert fees_of(made)[1] == 5 * GWEI
        block_of_tips(made, 7, 600 * GWEI, 600 * GWEI, 600 * GWEI, 600 * GWEI)
        assert fees_of(made)[1] == 8 * GWEI
        for _ in range(19):
            made.produce()
        # geth suggests at most 500 gwei.
        assert fees_of(made)[1] == 500 * GWEI
        made.produce()
        fee, tip = fees_of(made)
        assert tip == fee // 8


def test_without_a_fee_market_gas_costs_nothing() -> None:
    made = make_chain(3)
    backend = ChainBackend(MemoryChain(made.genesis, made.blocks, state=made.state))

    assert ask(backend, "eth_gasPrice") == ask(backend, "eth_baseFee") == "0x0"


def test_fee_history_has_base_fees_gas_ratios_and_rewards(chain: EmbeddedChain) -> None:
    history = ask(chain, HISTORY, "0x2", "latest", [0, 50, 100])

    assert history["oldestBlock"] == "0x2"
    assert len(history["baseFeePerGas"]) == 3
    assert history["baseFeePerGas"][:2] == [hex(GWEI)] * 2
    assert all(0 < ratio < 1 for ratio in history["gasUsedRatio"])
    # All transactions pay a tip of one gwei.
    assert history["reward"] == [[hex(GWEI)] * 3] * 2


def test_fee_history_begins_at_block_0(chain: EmbeddedChain) -> None:
    history = ask(chain, HISTORY, 100, "latest")

    assert history["oldestBlock"] == "0x0"
    assert len(history["gasUsedRatio"]) == 4
    assert "reward" not in history
    assert ask(chain, HISTORY, "0", "latest", []) == {
        "oldestBlock": "0x0",
        "gasUsedRatio": None,
    }


@pytest.mark.parametrize(("newest", "following"), [("0x0", "0x1"), ("0x1", "0x2")])
def test_fee_history_ends_with_the_base_fee_of_the_next_block(
    chain: EmbeddedChain, newest: str, following: str
) -> None:
    # The rule would lower the fee, as no block of this chain is half full.
    fee = ask(chain, "eth_getBlockByNumber", following, False)["baseFeePerGas"]

    assert ask(chain, HISTORY, 1, newest)["baseFeePerGas"][-1] == fee == hex(GWEI)


def test_fee_history_predicts_the_next_base_fee(chain: EmbeddedChain) -> None:
    foretold = ask(chain, HISTORY, 1, "latest")["baseFeePerGas"][-1]

    assert foretold == ask(chain, "eth_baseFee")
    assert int(foretold, 16) < GWEI


def test_after_block_0_comes_the_first_block_of_any_height() -> None:
    maker = ChainMaker(initial_height=50, application=EthermintDouble)
    backend = ChainBackend(MemoryChain(maker.genesis, [maker.block()], state=maker.state))

    assert ask(backend, HISTORY, 1, "earliest")["baseFeePerGas"] == ["0x0", hex(GWEI)]


def test_blobs_cost_the_least(chain: EmbeddedChain) -> None:
    history = ask(chain, HISTORY, 2, "latest")

    assert ask(chain, "eth_blobBaseFee") == "0x1"
    assert history["baseFeePerBlobGas"] == ["0x1"] * 3
    assert history["blobGasUsedRatio"] == [0, 0]


def test_fee_history_begins_at_the_initial_height() -> None:
    maker = ChainMaker(initial_height=50)
    backend = ChainBackend(
        MemoryChain(maker.genesis, [maker.block(), maker.block()], state=maker.state)
    )

    history = ask(backend, HISTORY, 100, "latest")

    assert history["oldestBlock"] == "0x32"
    assert len(history["gasUsedRatio"]) == 2


@pytest.mark.parametrize(
    ("params", "code", "text"),
    [
        (["0x1", "0x99"], -32000, "request beyond head block: requested 153, head 3"),
        (["0x1", "latest", [101]], -32000, "invalid reward percentile: 101.000000"),
        (
            ["0x1", "latest", [5, 5]],
            -32000,
            "invalid reward percentile: #0:5.000000 >= #1:5.000000",
        ),
        (
            ["0x1", "latest", list(range(101))],
            -32000,
            "invalid reward percentile: over the query limit 100",
        ),
        (
            ["0x1", "latest", ["a"]],
            -32602,
            "invalid argument 2: json: cannot unmarshal string into Go value of type float64",
        ),
        (
            ["0x1", "latest", [10**400]],
            -32602,
            "invalid argument 2: json: cannot unmarshal number into Go value of type float64",
        ),
        (
            [True, "latest"],
            -32602,
            "invalid argument 0: json: cannot unmarshal bool into Go value of type"
            " math.HexOrDecimal64",
        ),
    ],
)
def test_invalid_fee_history_params_get_geths_errors(
    chain: EmbeddedChain, params: list[Any], code: int, text: str
) -> None:
    assert ask(chain, HISTORY, *params) == {"code": code, "message": text}
