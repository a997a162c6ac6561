"""Tests of the ``trace`` namespace: calls, changes of the state, and instructions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.ethereum.rpc.execution import parity
from flask_noderpc.testing.node import app_for
from tests.ethereum.protocol.signing import ACCOUNT

from .contract import calling
from .trace_chain import FIRST, SECOND, Node, machine, transaction

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


def test_a_call_is_found_by_its_index_or_its_address(node: Node) -> None:
    # A creation that calls the first contract twice, which calls the second one.
    relay = calling("relay", SECOND, 3)
    stored = b"".join(
        b"\x7f" + part.ljust(32, b"\0") + b"\x60" + bytes((at,)) + b"\x52"
        for at, part in ((0, relay[:32]), (32, relay[32:64]), (64, relay[64:]))
    )
    called = bytes.fromhex(f"5f5f60445f5f73{FIRST.hex()}5af1")
    (own,) = node.block({"data": stored + called + called})
    traces = node.ask("trace_transaction", own)
    paths = [trace["traceAddress"] for trace in traces]
    assert paths == [[], [0], [0, 0], [1], [1, 0]]
    for number, trace in enumerate(traces):
        assert node.ask("trace_get", own, [hex(number)]) == trace
        if len(trace["traceAddress"]) != 1:
            assert node.ask("trace_get", own, list(map(hex, trace["traceAddress"]))) == trace
    assert node.ask("trace_get", own, ["0x63"]) is None
    assert node.ask("trace_get", own, ["0x1", "0x1"]) is None
    assert 'expected a list of indexes, such as ["0x0"]' in node.ask("trace_get", own, "0x0")


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
    bare = node.ask("trace_replayTransaction", hashes[1], [])
    assert {**replayed[1], "trace": []} == bare
    assert (bare["stateDiff"], bare["vmTrace"]) == (None, None)
    text = node.ask("trace_replayTransaction", hashes[1], ["trace", "vm"])
    assert "expected any of trace, stateDiff, vmTrace, got 'vm'" in text


def test_instructions_of_deeply_nested_calls_are_returned(node: Node) -> None:
    # A contract that calls itself with all its gas, and then a transaction to it.
    code = bytes.fromhex("5f5f5f5f5f305af1")
    (made,) = node.block({"data": bytes.fromhex("67") + code + bytes.fromhex("5f5260086018f3")})
    to = node.ask("eth_getTransactionReceipt", made)["contractAddress"]
    (own,) = node.block({"to": bytes.fromhex(to[2:]), "gas": 14_000_000})
    app = app_for(node.chain, json_rpc_enable=True, evm_api=("trace",))
    params = [height_of(node, own), ["vmTrace"]]
    body = {"jsonrpc": "2.0", "id": 1, "method": "trace_replayBlockTransactions"}
    # Python's decoder would refuse this response.
    reply = app.test_client().post("/evm", json={**body, "params": params}).data
    assert reply.count(b'"CALL"') > 400
    assert reply.endswith(f'"transactionHash":"{own}"}}]}}'.encode())


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


EVERY_KIND = ["trace", "stateDiff", "vmTrace"]
PLACE = "0x" + "ab" * 20
OTHER_PLACE = "0x" + "cd" * 20


def test_the_instructions_of_a_call_and_its_subcall(node: Node) -> None:
    # PUSH1 7, PUSH0, MSTORE; CALL of the other account with the word of the memory, and 32
    # bytes of room for its output; SSTORE of the result, STOP.
    caller = f"60075f5260205f60205f5f73{OTHER_PLACE[2:]}615000f15f55"
    # CALLDATALOAD of 0, DUP1, PUSH0, MSTORE, REVERT of the memory.
    callee = "5f35805f5260205ffd"
    overrides = {PLACE: {"code": f"0x{caller}"}, OTHER_PLACE: {"code": f"0x{callee}"}}
    call = {"to": PLACE, "gas": hex(100_000)}
    found = node.ask("trace_call", call, ["vmTrace"], "latest", overrides)
    assert (found["output"], found["trace"], found["stateDiff"]) == ("0x", [], None)
    trace = found["vmTrace"]
    assert trace["code"] == f"0x{caller}"
    ops = trace["ops"]
    gas = 100_000 - 21_000
    assert ops[0] == {
        "pc": 0,
        "op": "PUSH1",
        "cost": 3,
        "sub": None,
        "ex": {"mem": None, "push": ["0x7"], "store": None, "used": gas - 3},
    }
    memory = {"off": 0, "data": f"0x{7:064x}"}
    assert (ops[2]["op"], ops[2]["ex"]["mem"], ops[2]["ex"]["push"]) == ("MSTORE", memory, [])
    called = next(op for op in ops if op["op"] == "CALL")
    assert (called["cost"], called["ex"]["push"]) == (2_600 + 0x5000, ["0x0"])
    assert called["ex"]["mem"] == memory
    stored = ops[-2]
    assert (stored["op"], stored["ex"]["store"]) == ("SSTORE", {"key": "0x0", "val": "0x0"})
    sub = called["sub"]
    assert sub["code"] == f"0x{callee}"
    assert [op["op"] for op in sub["ops"]] == (
        ["PUSH0", "CALLDATALOAD", "DUP1", "PUSH0", "MSTORE", "PUSH1", "PUSH0", "REVERT"]
    )
    assert [op["ex"]["push"] for op in sub["ops"]] == (
        [["0x0"], ["0x7"], ["0x7", "0x7"], ["0x0"], [], ["0x20"], ["0x0"], []]
    )
    left = sub["ops"][-1]["ex"]["used"]
    assert called["ex"]["used"] == stored["ex"]["used"] + stored["cost"] + 2
    assert left < 0x5000 < called["ex"]["used"]


def test_failed_instructions_were_not_executed(node: Node) -> None:
    # CREATE of code with an invalid instruction, then JUMP to 0.
    code = "60fe5f5360015f5ff05f56"
    overrides = {PLACE: {"code": f"0x{code}"}}
    call = {"to": PLACE, "gas": hex(200_000)}
    found = node.ask("trace_call", call, ["vmTrace"], "latest", overrides)["vmTrace"]
    *_, creating, _, jump = found["ops"]
    assert (jump["op"], jump["ex"]) == ("JUMP", None)
    assert (creating["op"], creating["ex"]["push"]) == ("CREATE", ["0x0"])
    assert creating["sub"]["code"] == "0xfe"
    assert [(op["op"], op["ex"]) for op in creating["sub"]["ops"]] == [("INVALID", None)]
    # The new contract gets all gas but a 64th, and burns it.
    assert creating["cost"] > 32_000 + 100_000


def test_changes_of_accounts_that_are_new_and_that_stay(node: Node) -> None:
    before = node.ask("eth_getBalance", SENDER, "latest")
    nonce = node.ask("eth_getTransactionCount", SENDER, "latest")
    call = {"from": SENDER, "to": PLACE, "value": "0x5"}
    found = node.ask("trace_call", call, ["stateDiff"])["stateDiff"]
    assert found == {
        SENDER: {
            "balance": {"*": {"from": before, "to": hex(int(before, 16) - 5)}},
            "code": "=",
            "nonce": {"*": {"from": nonce, "to": hex(int(nonce, 16) + 1)}},
            "storage": {},
        },
        PLACE: {
            "balance": {"+": "0x5"},
            "code": {"+": "0x"},
            "nonce": {"+": "0x0"},
            "storage": {},
        },
    }
    # SSTORE of 7, then return 1 byte as the code.
    call = {"from": SENDER, "data": "0x60075f5560015ff3"}
    created = node.ask("trace_call", call, ["stateDiff", "trace"])
    (trace,) = created["trace"]
    assert created["stateDiff"][trace["result"]["address"]] == {
        "balance": {"+": "0x0"},
        "code": {"+": "0x00"},
        "nonce": {"+": "0x1"},
        "storage": {f"0x{0:064x}": {"+": f"0x{7:064x}"}},
    }
    assert created["output"] == "0x00"
    assert not {"blockHash", "blockNumber", "transactionHash", "transactionPosition"} & set(
        trace
    )


def test_changes_of_an_account_that_is_deleted(tmp_path: Path) -> None:
    with machine(tmp_path, evm_hardfork="shanghai") as node:
        # SLOAD of 0, then SELFDESTRUCT; the constructor stores 7.
        (made,) = node.block({"data": bytes.fromhex("60075f5563 5f5433ff 5f526004601cf3")})
        address = node.ask("eth_getTransactionReceipt", made)["contractAddress"]
        (ended,) = node.block({"to": bytes.fromhex(address[2:])})
        changes = node.ask("trace_replayTransaction", ended, ["stateDiff"])["stateDiff"]
        assert changes[address] == {
            "balance": {"-": "0x0"},
            "code": {"-": "0x5f5433ff"},
            "nonce": {"-": "0x1"},
            "storage": {f"0x{0:064x}": {"-": f"0x{7:064x}"}},
        }


def test_a_call_is_traced_after_any_block(node: Node) -> None:
    node.block({"to": FIRST, "data": calling("bump", 5)})
    call = {"from": SENDER, "to": address(FIRST), "data": f"0x{calling('total').hex()}"}
    first = node.ask("eth_getBlockByNumber", "0x1", False)["hash"]
    outputs = [
        node.ask("trace_call", call, ["trace"], *block)["output"]
        for block in ([], ["latest"], ["0x1"], [first], [{"blockHash": first}])
    ]
    assert outputs[0] == outputs[1] != outputs[2] == f"0x{0:064x}"
    assert set(outputs[2:]) == {outputs[2]}
    assert node.ask("trace_call", call, ["trace"], "0xffffff") == "header not found"
    poor = {**call, "from": PLACE, "value": "0x1"}
    assert "insufficient funds" in node.ask("trace_call", poor, ["trace"])


def test_calls_are_traced_one_after_another(node: Node) -> None:
    bump = {"from": SENDER, "to": address(FIRST), "data": f"0x{calling('bump', 5).hex()}"}
    first, second = node.ask("trace_callMany", [[bump, EVERY_KIND], [bump, ["trace"]]])
    assert int(second["output"], 16) == int(first["output"], 16) + 5
    assert (second["stateDiff"], second["vmTrace"]) == (None, None)
    assert first == node.ask("trace_call", bump, EVERY_KIND)
    assert node.ask("trace_callMany", []) == []
    many = node.ask("trace_callMany", [[bump, []]] * 1_001)
    assert "expected at most 1000 calls, got 1001" in many
    assert "expected a list with a call and its kinds" in node.ask("trace_callMany", [[bump]])


def test_a_raw_transaction_is_traced_before_it_is_sent(node: Node) -> None:
    data = calling("bump", 5)
    raw = f"0x{transaction(node.nonce, to=FIRST, data=data).hex()}"
    traced = node.ask("trace_rawTransaction", raw, ["trace", "vmTrace"])
    # alloy sends the bytes as numbers.
    numbers = list(bytes.fromhex(raw[2:]))
    assert node.ask("trace_rawTransaction", numbers, ["trace", "vmTrace"]) == traced
    for wrong in ([256], ["0x1"]):
        assert "cannot unmarshal array" in node.ask("trace_rawTransaction", wrong, [])
    (own,) = node.block({"to": FIRST, "data": data})
    assert traced == node.ask("trace_replayTransaction", own, ["trace", "vmTrace"])
    assert traced["output"] != "0x"
    assert "nonce too low" in node.ask("trace_rawTransaction", raw, ["trace"])


def test_traces_are_bounded_by_the_size_of_responses(tmp_path: Path) -> None:
    with machine(tmp_path, max_response_bytes=50_000) as node:
        call = {"to": address(FIRST), "data": f"0x{calling('spin').hex()}"}
        found = node.ask("trace_call", call, ["vmTrace"])
        assert "the response is larger than 50000 bytes" in found
        # A contract whose code is 9,000 zeros.
        large = {"data": "0x6123285ff3"}
        assert node.ask("trace_call", large, ["trace"])["output"] == f"0x{bytes(9_000).hex()}"
        many = node.ask("trace_callMany", [[large, ["trace"]]] * 2)
        assert "the response is larger than 50000 bytes" in many
