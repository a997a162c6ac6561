"""Tests of ``erc7562Tracer``, over HTTP, against geth's traces of the same transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flask_noderpc.ethereum.protocol.transactions import decode
from tests.clients.record_traces import RECORDING
from tests.ethereum.protocol.signing import ACCOUNT

from .trace_chain import Node, machine_with, recorded

RECORDED = recorded(RECORDING)
# The first two transactions create the contracts in block 1.
TXS = [bytes.fromhex(each[2:]) for each in RECORDED["transactions"]][2:]
TRACES = RECORDED["traces"][2:]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with the recorded transactions in block 2."""
    with machine_with(TXS, tmp_path_factory.mktemp("traces")) as made:
        yield made


def shown(value: bytes) -> str:
    return f"0x{value.hex()}"


def traced(config: Any) -> dict[str, Any]:
    return {"tracer": "erc7562Tracer", "tracerConfig": config}


@pytest.mark.parametrize("index", range(len(RECORDED["configs"])))
def test_traces_of_transactions_are_equal_to_those_of_geth(node: Node, index: int) -> None:
    options = traced(RECORDED["configs"][index])
    for raw, expected in zip(TXS, TRACES, strict=True):
        own = shown(decode(raw).hash)
        assert node.ask("debug_traceTransaction", own, options) == expected[index]


def test_traces_of_a_block_are_equal_to_those_of_geth(node: Node) -> None:
    options = traced(RECORDED["configs"][1])
    expected = [traces[1] for traces in TRACES]
    traces = node.ask("debug_traceBlockByNumber", "0x2", options)
    assert [trace["result"] for trace in traces] == expected
    raw = node.ask("debug_getRawBlock", "0x2")
    assert node.ask("debug_traceBlock", raw, options) == traces


def test_calls_are_traced_like_transactions(node: Node) -> None:
    options = traced(RECORDED["configs"][0])
    for index, (raw, expected) in enumerate(zip(TXS, TRACES, strict=True)):
        tx = decode(raw)
        if tx.authorizations:
            continue
        call = {
            "from": ACCOUNT.address,
            "to": tx.to and shown(tx.to),
            "data": shown(tx.data),
            "value": hex(tx.value),
            "gas": hex(tx.gas),
        }
        within = {**options, "txIndex": hex(index)}
        assert node.ask("debug_traceCall", call, "0x2", within) == expected[0]


def test_the_mux_tracer_has_the_same_trace(node: Node) -> None:
    own = shown(decode(TXS[-1]).hash)
    both = {"tracer": "muxTracer", "tracerConfig": {"erc7562Tracer": {}, "noopTracer": {}}}
    assert node.ask("debug_traceTransaction", own, both) == {
        "erc7562Tracer": TRACES[-1][0],
        "noopTracer": {},
    }


@pytest.mark.parametrize(("config", "error"), RECORDED["errors"])
def test_invalid_options_get_the_errors_of_geth(node: Node, config: Any, error: str) -> None:
    own = shown(decode(TXS[0]).hash)
    assert node.ask("debug_traceTransaction", own, traced(config)) == error


def test_a_negative_size_is_refused(node: Node) -> None:
    own = shown(decode(TXS[0]).hash)
    assert node.ask("debug_traceTransaction", own, traced({"stackTopItemsSize": -1})) == (
        "stackTopItemsSize: expected a number of at least 0, got -1"
    )


@pytest.mark.parametrize("op", ["54", "55", "5c", "5d", "20", "3b", "3c", "3f", "f1", "fa"])
def test_instructions_without_their_words_are_counted(node: Node, op: str) -> None:
    call = {"from": ACCOUNT.address, "data": f"0x{op}"}
    trace = node.ask("debug_traceCall", call, "latest", traced({}))
    assert trace["error"] == "stack underflow"
    assert trace["usedOpcodes"] == {f"0x{op}": 1}
    assert not trace["contractSize"]


def test_the_size_of_a_trace_is_limited(node: Node) -> None:
    # JUMPDEST, hash the memory from 0 to MSIZE, write the hash at MSIZE, JUMP: each pass hashes
    # a longer part of the memory.
    call = {"from": ACCOUNT.address, "data": "0x5b595f2059525f56", "gas": hex(10_000_000)}
    assert str(node.ask("debug_traceCall", call, "latest", traced({}))).startswith(
        "the response is larger than 5000000 bytes"
    )
