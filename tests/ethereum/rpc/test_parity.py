"""Tests of the ``trace`` namespace: calls of transactions as by geth's flatCallTracer."""

from __future__ import annotations

from typing import Any

import pytest

from flask_noderpc.ethereum.rpc.execution import parity
from tests.ethereum.protocol.signing import ACCOUNT

from .trace_chain import FIRST, SECOND, Node, machine

SENDER = ACCOUNT.address.lower()
FLAT = {"tracer": "flatCallTracer", "tracerConfig": {"convertParityErrors": True}}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with machine(tmp_path_factory.mktemp("parity")) as made:
        yield made


@pytest.fixture(scope="module")
def hashes(node: Node) -> list[str]:
    """Return the hashes of a block's two transactions."""
    return node.block({"to": FIRST}, {"to": SECOND})


def height_of(node: Node, tx_hash: str) -> str:
    found: str = node.ask("eth_getTransactionReceipt", tx_hash)["blockNumber"]
    return found


def test_traces_are_those_of_the_flat_tracer(node: Node, hashes: list[str]) -> None:
    flat = [node.ask("debug_traceTransaction", each, FLAT) for each in hashes]
    for traces in flat:
        action, result = traces[0]["action"], traces[0]["result"]
        # The intrinsic gas of 21,000 is paid before the call.
        action["gas"] = hex(int(action["gas"], 16) - 21_000)
        result["gasUsed"] = hex(int(result["gasUsed"], 16) - 21_000)
    assert [node.ask("trace_transaction", each) for each in hashes] == flat
    height = height_of(node, hashes[0])
    assert node.ask("trace_block", height) == [*flat[0], *flat[1]]
    assert [trace["transactionPosition"] for trace in node.ask("trace_block", height)] == [
        *(0 for _ in flat[0]),
        *(1 for _ in flat[1]),
    ]
    assert node.ask("trace_get", hashes[0], ["0x0"]) == flat[0][0]
    assert node.ask("trace_get", hashes[0], ["0x63"]) is None


def test_what_does_not_exist_has_no_traces(node: Node) -> None:
    assert node.ask("trace_transaction", "0x" + "00" * 32) == []
    assert node.ask("trace_block", "0xfffff") == []
    assert node.ask("trace_block", "0x0") == []
    assert node.ask("trace_replayTransaction", "0x" + "00" * 32, ["trace"]) == (
        "transaction not found"
    )


def test_replays_have_the_output_and_no_place(node: Node, hashes: list[str]) -> None:
    replayed = node.ask("trace_replayBlockTransactions", height_of(node, hashes[0]), ["trace"])
    assert [each.pop("transactionHash") for each in replayed] == hashes
    assert replayed[1] == node.ask("trace_replayTransaction", hashes[1], ["trace"])
    first = replayed[0]["trace"][0]
    assert replayed[0]["output"] == first["result"]["output"]
    assert set(first) == {*("action", "error", "result", "subtraces", "traceAddress", "type")}
    text = node.ask("trace_replayTransaction", hashes[1], ["trace", "vmTrace"])
    assert 'expected "trace", the only supported kind, got "vmTrace"' in text


def address(value: bytes) -> str:
    return f"0x{value.hex()}"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, [FIRST, SECOND]),
        ({"fromAddress": [SENDER]}, [FIRST, SECOND]),
        ({"toAddress": [address(SECOND)]}, [SECOND]),
        ({"fromAddress": ["0x" + "42" * 20]}, []),
        ({"fromAddress": ["0x" + "42" * 20], "toAddress": [address(FIRST)]}, [FIRST]),
        (
            {
                "fromAddress": ["0x" + "42" * 20],
                "toAddress": [address(FIRST)],
                "mode": "intersection",
            },
            [],
        ),
        ({"after": 1}, [SECOND]),
        ({"count": 1}, [FIRST]),
        ({"after": 2, "count": 5}, []),
        ({"after": 1 << 63}, []),
        ({"after": (1 << 64) - 1, "count": (1 << 64) - 1}, []),
        ({"count": (1 << 64) - 1}, [FIRST, SECOND]),
        ({"count": 0}, []),
    ],
)
def test_filters_select_by_sender_and_recipient(
    node: Node, hashes: list[str], wanted: dict[str, Any], expected: list[bytes]
) -> None:
    height = height_of(node, hashes[0])
    found = node.ask("trace_filter", {"fromBlock": height, "toBlock": height, **wanted})
    tops = [trace["action"]["to"] for trace in found if not trace["traceAddress"]]
    assert tops == [address(each) for each in expected]


def test_filters_are_bounded(
    node: Node, hashes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parity, "_MAX_BLOCKS", 1)
    assert node.ask("trace_filter", {"fromBlock": "0x0"}) == (
        "block range too large, currently limited to 1"
    )
    assert node.ask("trace_filter", {"fromBlock": "0xffffff", "toBlock": "0xfffffff"}) == []
    for wanted, text in (
        ({"mode": "both"}, "mode: expected union or intersection, got 'both'"),
        ({"fromBlock": "0x" + "00" * 32}, "expected the number of a block, got a hash"),
        ({"fromAddress": "0x"}, "cannot unmarshal string"),
        ({"count": -1}, "cannot unmarshal number -1"),
    ):
        assert text in node.ask("trace_filter", wanted)
