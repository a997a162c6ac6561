"""Tests of ``eth_simulateV1`` over HTTP, on a chain that runs code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flask_noderpc.protocol.secp256k1eth import keccak
from tests.ethereum.protocol.signing import ACCOUNT

from .contract import calling
from .trace_chain import FIRST, SECOND, Node, machine

ME = ACCOUNT.address.lower()
NOBODY, OTHER = "0x" + "aa" * 20, "0x" + "bb" * 20
_LARGEST = 50_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with two contracts in block 1."""
    folder = tmp_path_factory.mktemp("simulate")
    with machine(folder, max_response_bytes=_LARGEST) as made:
        yield made


def call(name: str, *words: int | bytes, **others: str) -> dict[str, Any]:
    data = f"0x{calling(name, *words).hex()}"
    return {"from": ME, "to": f"0x{FIRST.hex()}", "data": data, **others}


def simulated(node: Node, *blocks: Any, **options: Any) -> Any:
    """Return the simulated blocks, or the error object."""
    payload = {"blockStateCalls": list(blocks), **options}
    reply = node.post("eth_simulateV1", (payload, "latest"))
    return reply["result"] if "result" in reply else reply["error"]


def test_calls_follow_one_another_and_change_nothing(node: Node) -> None:
    first, second = simulated(
        node,
        {"calls": [call("bump", 7), call("fail", 1), call("relay", SECOND, 2)]},
        {"calls": [call("total")]},
    )
    assert [one["status"] for one in first["calls"]] == ["0x1", "0x0", "0x1"]
    assert int(second["calls"][0]["returnData"], 16) == 7
    failed = first["calls"][1]
    assert (failed["error"]["code"], failed["returnData"]) == (3, "0x")
    assert failed["error"]["message"] == "execution reverted: no luck"
    assert failed["error"]["data"].startswith("0x08c379a0")
    assert [log["logIndex"] for one in first["calls"] for log in one["logs"]] == ["0x0", "0x1"]
    assert int(node.ask("eth_call", call("total"), "latest"), 16) == 0


def test_blocks_are_those_of_a_chain(node: Node) -> None:
    base = node.ask("eth_getBlockByNumber", "latest", False)
    first, second = simulated(node, {"calls": [call("bump", 7)]}, {})
    assert first["parentHash"] == base["hash"]
    assert second["parentHash"] == first["hash"]
    assert int(first["number"], 16) == int(base["number"], 16) + 1
    assert int(first["timestamp"], 16) == int(base["timestamp"], 16) + 12
    assert (
        first["stateRoot"]
        != base["stateRoot"]
        == node.ask("eth_getBlockByNumber", "latest", False)["stateRoot"]
    )
    # Without validation, gas costs nothing, so an empty block changes nothing.
    assert second["stateRoot"] == first["stateRoot"]
    assert first["gasUsed"] == first["calls"][0]["gasUsed"]
    assert first["baseFeePerGas"] == "0x0"
    (log,) = first["calls"][0]["logs"]
    assert log["blockHash"] == first["hash"]
    assert [log["transactionHash"]] == first["transactions"]


def test_transactions_are_whole_if_wanted(node: Node) -> None:
    (block,) = simulated(node, {"calls": [call("bump", 7)]}, returnFullTransactions=True)
    (tx,) = block["transactions"]
    assert (tx["from"], tx["blockHash"], tx["nonce"]) == (ME, block["hash"], "0x2")


def test_code_finds_the_hashes_of_simulated_blocks(node: Node) -> None:
    # Code that returns BLOCKHASH of NUMBER - 1; it is not init code, as deployed code may not
    # begin with 0xef.
    code = {OTHER: {"code": "0x60014303405f5260205ff3"}}
    hash_before = {"to": OTHER}
    first, second = simulated(
        node, {"stateOverrides": code, "calls": [hash_before]}, {"calls": [hash_before]}
    )
    assert second["calls"][0]["returnData"] == first["hash"]
    assert first["calls"][0]["returnData"] == first["parentHash"]


def test_a_gap_between_numbers_is_filled_with_empty_blocks(node: Node) -> None:
    number = int(node.ask("eth_blockNumber"), 16)
    made = simulated(
        node, {"blockOverrides": {"number": hex(number + 3), "gasLimit": "0x9999"}}
    )
    assert [int(block["number"], 16) for block in made] == [number + n for n in (1, 2, 3)]
    assert made[-1]["gasLimit"] == "0x9999"


def test_state_and_block_can_be_otherwise(node: Node) -> None:
    slot = {f"0x{0:064x}": f"0x{41:064x}"}
    block = {
        "stateOverrides": {f"0x{FIRST.hex()}": {"stateDiff": slot}},
        "blockOverrides": {"feeRecipient": NOBODY, "time": "0xffffffff"},
        # Code that returns COINBASE.
        "calls": [call("bump", 1), {"data": "0x415f5260205ff3"}],
    }
    (made,) = simulated(node, block)
    assert int(made["calls"][0]["returnData"], 16) == 42
    assert made["calls"][1]["returnData"][-40:] == NOBODY[2:]
    assert (made["miner"], made["timestamp"]) == (NOBODY, "0xffffffff")


def test_transfers_are_logged_if_wanted(node: Node) -> None:
    rich = {NOBODY: {"balance": "0x100"}}
    send = {"from": NOBODY, "to": OTHER, "value": "0x10"}
    # The contract does not accept ether, and a reverted transfer has no log.
    refused = {**send, "to": f"0x{FIRST.hex()}"}
    block = {"stateOverrides": rich, "calls": [send, refused]}
    (made,) = simulated(node, block, traceTransfers=True)
    (log,) = made["calls"][0]["logs"]
    assert log["address"] == "0x" + "ee" * 20
    assert log["topics"] == [
        f"0x{keccak(b'Transfer(address,address,uint256)').hex()}",
        f"0x{int(NOBODY, 16):064x}",
        f"0x{int(OTHER, 16):064x}",
    ]
    assert int(log["data"], 16) == 0x10
    assert made["calls"][1]["logs"] == []
    (quiet,) = simulated(node, block)
    assert quiet["calls"][0]["logs"] == []


def test_validation_looks_at_fees_and_nonces(node: Node) -> None:
    paid = {"maxFeePerGas": "0x77359400", "gas": "0x20000"}
    (made,) = simulated(node, {"calls": [call("bump", 7, **paid)]}, validation=True)
    latest = node.ask("eth_getBlockByNumber", "latest", False)
    assert int(made["baseFeePerGas"], 16) == int(node.ask("eth_baseFee"), 16)
    assert made["baseFeePerGas"] != latest["baseFeePerGas"]


_FIRST, _SECOND = "0x" + "00" * 19 + "01", "0x" + "00" * 19 + "02"


def _moves(targets: dict[str, str]) -> dict[str, Any]:
    """Return a block that moves precompiled contracts."""
    moved = {each: {"movePrecompileToAddress": to} for each, to in targets.items()}
    return {"stateOverrides": moved}


_PAID = {"maxFeePerGas": "0x77359400", "gas": "0x20000"}


@pytest.mark.parametrize(
    ("block", "options", "code", "text"),
    [
        ({"blockOverrides": {"number": "0x1"}}, {}, -38020, "block numbers must be in order"),
        ({"blockOverrides": {"time": "0x1"}}, {}, -38021, "block timestamps must be in order"),
        ({"blockOverrides": {"number": "0x102"}}, {}, -38026, "too many blocks"),
        ({"calls": [{}] * 5001}, {}, -38026, "too many calls in block: 5001 > 5000"),
        (
            {"calls": [{"from": NOBODY, "to": OTHER, "value": "0x1"}]},
            {},
            -38014,
            "insufficient funds for gas * price + value: address 0xaaaa",
        ),
        ({"calls": [{"to": OTHER, "gas": "0x5"}]}, {}, -38013, "intrinsic gas too low"),
        (
            {"calls": [{"to": OTHER, "gas": "0xffffffff"}]},
            {},
            -38015,
            "block gas limit reached: 0 >= 15000000",
        ),
        (
            {"calls": [call("bump", 1, nonce="0x1", **_PAID)]},
            {"validation": True},
            -38010,
            "nonce too low: next nonce 2, tx nonce 1",
        ),
        (
            {"calls": [call("bump", 1, nonce="0x9", **_PAID)]},
            {"validation": True},
            -38011,
            "nonce too high",
        ),
        (
            {"calls": [call("bump", 1)]},
            {"validation": True},
            -38012,
            "max fee per gas less than block base fee",
        ),
        (
            {
                "stateOverrides": {NOBODY: {"nonce": "0xffffffffffffffff"}},
                "calls": [{"from": NOBODY, "to": OTHER}],
            },
            {"validation": True},
            -32603,
            "nonce has max value: address 0xaaaa",
        ),
        (
            _moves({OTHER: NOBODY}),
            {},
            -32000,
            "account 0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB is not a precompile",
        ),
        (_moves({_FIRST: _FIRST}), {}, -38022, f"account {_FIRST} has been moved to itself"),
        (
            _moves({_FIRST: NOBODY, _SECOND: NOBODY}),
            {},
            -38023,
            "account 0xaAaAaAaaAaAaAaaAaAAAAAAAAaaaAaAaAaaAaaAa has already been overridden",
        ),
        (
            {"calls": [{"data": "0x" + "00" * 50_000}]},
            {},
            -38025,
            "max initcode size exceeded",
        ),
        ({"calls": 7}, {}, -32602, "invalid argument 0: json: cannot unmarshal number into"),
        # Code that returns 60,000 zeros.
        (
            {"calls": [{"data": "0x61ea605ffd"}]},
            {},
            -32000,
            f"the response is larger than {_LARGEST} bytes",
        ),
    ],
)
def test_invalid_simulations_get_geths_errors(
    node: Node, block: Any, options: Any, code: int, text: str
) -> None:
    error = simulated(node, block, **options)
    assert error["code"] == code
    assert error["message"].startswith(text)


def test_nothing_and_too_much_are_refused(node: Node) -> None:
    assert simulated(node) == {"code": -32602, "message": "empty input"}
    assert simulated(node, *[{}] * 257)["code"] == -38026
    assert simulated(node, *[{"calls": [{}] * 5_000}] * 3)["code"] == -38026


def test_simulated_call_failures_have_their_codes(node: Node) -> None:
    (block,) = simulated(node, {"calls": [{"data": "0xfe"}]})
    assert block["calls"][0]["error"] == {
        "code": -32015,
        "message": "invalid opcode: INVALID",
    }


def test_blobs_create_no_contract(node: Node) -> None:
    blobs = {"from": ME, "data": "0x00", "blobVersionedHashes": ["0x01" + "00" * 31]}
    error = simulated(node, {"calls": [blobs]})
    assert error["message"] == "blob transaction of type create"


HASH = "0x01" + "00" * 31
BLOBS = {"to": OTHER, "blobVersionedHashes": [HASH]}


def test_blobs_cost_nothing_unless_a_fee_for_them_is_named(node: Node) -> None:
    (made,) = simulated(node, {"calls": [{"from": NOBODY, **BLOBS}]})
    assert made["calls"][0]["status"] == "0x1"
    dear = {"from": NOBODY, **BLOBS, "maxFeePerBlobGas": "0x1"}
    error = simulated(node, {"calls": [dear]})
    assert f"have 0 want {1 << 17}" in error["message"]


@pytest.mark.parametrize(
    ("fee", "count", "text"),
    [("0x0", 1, "max fee per blob gas less than block blob gas fee"), ("0x1", 10, "too many")],
)
def test_validation_looks_at_blobs(node: Node, fee: str, count: int, text: str) -> None:
    paid = {"maxFeePerGas": hex(5 * 10**9), "maxPriorityFeePerGas": "0x1"}
    sent = {
        "from": ME,
        **BLOBS,
        "blobVersionedHashes": [HASH] * count,
        "maxFeePerBlobGas": fee,
        **paid,
    }
    error = simulated(node, {"calls": [sent]}, validation=True)
    assert text in error["message"]


def test_an_estimate_leaves_what_blobs_cost(node: Node) -> None:
    balance = {NOBODY: {"balance": hex(10**16)}}
    paid = {"maxFeePerGas": hex(5 * 10**9), "maxFeePerBlobGas": "0x1"}
    found = node.ask("eth_estimateGas", {"from": NOBODY, **BLOBS, **paid}, "latest", balance)
    assert found == "0x5208"
