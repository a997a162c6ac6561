"""Tests of traces and access lists, over HTTP, of a chain that runs code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.ethereum.protocol import rlp
from flask_noderpc.ethereum.protocol.blocks import decode_block
from flask_noderpc.ethereum.protocol.consensus import encode_header
from flask_noderpc.protocol.secp256k1eth import to_checksum
from tests.ethereum.protocol.signing import ACCOUNT, CHAIN_ID, OTHER, TO
from tests.helpers.until import until

from .contract import CODE, calling
from .trace_chain import FIRST, RICH, SECOND, Node, machine

ME = ACCOUNT.address.lower()
_SPIN = {"to": f"0x{FIRST.hex()}", "data": f"0x{calling('spin').hex()}"}


def shown(value: bytes) -> str:
    return f"0x{value.hex()}"


def call(name: str, *words: int | bytes) -> dict[str, str]:
    return {"from": ME, "to": shown(FIRST), "data": shown(calling(name, *words))}


def to_first(name: str, *words: int | bytes, **fields: Any) -> dict[str, Any]:
    return {"to": FIRST, "data": calling(name, *words), **fields}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with two contracts in block 1, and the transactions of ``HASHES`` in block 2."""
    with machine(tmp_path_factory.mktemp("traces"), max_response_bytes=2_000_000) as made:
        NAMES.clear()
        transactions = {
            "bump": to_first("bump", 7),
            "relay": to_first("relay", SECOND, 3),
            "attempt": to_first("attempt", SECOND, 3),
            "spawn": to_first("spawn", SECOND),
            "fail": to_first("fail", 9),
            "plain": {"to": TO, "value": 5},
            "clear": to_first("clear"),
            "poor": to_first("bump", 1, gas=40_000),
            # PUSH1 1, JUMP.
            "stray": {"data": bytes.fromhex("600156")},
            # SLOAD of 0, SSTORE, then SELFDESTRUCT with the caller as the beneficiary.
            "ends": {"data": bytes.fromhex("5f545060015f5533ff"), "value": 3},
            # CALL of the caller and CREATE, each with 1 wei that the contract does not have.
            "broke": {"data": bytes.fromhex("5f5f60205f6001335af15060025f6001f0")},
            # BLAKE2 compression takes 213 bytes.
            "short": {"to": (9).to_bytes(20), "data": b"short"},
        }
        NAMES.update(zip(transactions, made.block(*transactions.values()), strict=True))
        yield made


NAMES: dict[str, str] = {}


def traced(node: Node, name: str, tracer: str | None = None, **config: Any) -> Any:
    options: dict[str, Any] = {"tracer": tracer, "tracerConfig": config} if tracer else config
    return node.ask("debug_traceTransaction", NAMES[name], options)


def test_the_plain_trace_has_every_step_and_the_gas_of_the_receipt(node: Node) -> None:
    for own in NAMES.values():
        trace = node.ask("debug_traceTransaction", own)
        receipt = node.ask("eth_getTransactionReceipt", own)
        assert trace["gas"] == int(receipt["gasUsed"], 16)
        assert trace["failed"] is (receipt["status"] == "0x0")
        steps = trace["structLogs"]
        # Each step of a call frame begins with what the previous step left.
        for step, after in pairwise(steps):
            if step["depth"] == after["depth"] and not _begins(step):
                assert step["gas"] - step["gasCost"] == after["gas"]
    assert traced(node, "plain")["structLogs"] == []


def _begins(step: dict[str, Any]) -> bool:
    return "CALL" in step["op"][-4:] or step["op"].startswith("CREATE")


def test_a_step_shows_its_stack_and_the_storage_that_it_is_about(node: Node) -> None:
    steps = traced(node, "bump")["structLogs"]
    first = steps[0]
    assert first == {
        "pc": 0,
        "op": "PUSH0",
        "gas": first["gas"],
        "gasCost": 2,
        "depth": 1,
        "stack": [],
    }
    store = next(step for step in steps if step["op"] == "SSTORE")
    assert store["stack"][-2:] == ["0x7", "0x0"]
    assert store["storage"] == {f"0x{0:064x}": f"0x{7:064x}"}
    assert store["gasCost"] == 20_000
    assert {step["op"] for step in steps if "storage" in step} == {"SLOAD", "SSTORE"}


def test_trace_options_choose_the_fields_of_a_step(node: Node) -> None:
    plain = traced(node, "relay", disableStack=True, disableStorage=True)["structLogs"]
    assert not {"stack", "storage", "memory", "returnData"} & set().union(*plain)
    whole = traced(node, "relay", enableMemory=True, enableReturnData=True)["structLogs"]
    returned = next(step for step in whole if "returnData" in step)
    assert returned["returnData"] == f"0x{3:064x}"
    assert all(len(word) == 66 for step in whole for word in step.get("memory", ()))
    few = traced(node, "relay", limit=300)["structLogs"]
    assert 0 < len(few) < 10


def test_struct_log_trace_shows_the_revert_data(node: Node) -> None:
    failed = traced(node, "fail")
    assert failed["returnValue"].startswith("0x08c379a0")
    poor = traced(node, "poor")
    last = poor["structLogs"][-1]
    assert (poor["returnValue"], last["error"], last["op"]) == ("0x", "out of gas", "SSTORE")
    assert last["gasCost"] > last["gas"]
    # geth does not report an error that an instruction raises while it runs.
    assert "error" not in traced(node, "stray")["structLogs"][-1]


def test_options_are_found_in_any_letter_case(node: Node) -> None:
    # geth's own client writes the names of Go's fields.
    own, options = NAMES["relay"], {"Tracer": "callTracer", "TracerConfig": {"WithLog": True}}
    expected = traced(node, "relay", "callTracer", withLog=True)
    assert node.ask("debug_traceTransaction", own, options) == expected
    # With repeated members, the last one counts.
    twice = {"Tracer": "noopTracer", "tracer": "callTracer", "tracerconfig": {"withlog": True}}
    assert node.ask("debug_traceTransaction", own, twice) == expected
    steps = node.ask("debug_traceTransaction", own, {"DisableStack": True})["structLogs"]
    assert not any("stack" in step for step in steps)
    config = {"Tracer": "callTracer", "StateOverrides": {ME: {"Code": "0x00"}}}
    assert node.ask("debug_traceCall", {"From": ME, "To": TO}, "latest", config)["to"] == (
        TO.lower()
    )


def test_refunds_are_counted_over_the_transaction(node: Node) -> None:
    steps = traced(node, "clear")["structLogs"]
    (at,) = (place for place, step in enumerate(steps) if step["op"] == "SSTORE")
    # As in geth, the instruction that earns the refund has it, too.
    assert "refund" not in steps[at - 1]
    assert {step["refund"] for step in steps[at:]} == {4_800}


@pytest.mark.parametrize("op", ["31", "3b", "3c", "3f", "f1", "f2", "f4", "fa"])
def test_instructions_that_fail_at_once_have_a_cost(node: Node, op: str) -> None:
    call = {"from": ACCOUNT.address, "data": f"0x{op}"}
    (step,) = node.ask("debug_traceCall", call, "latest")["structLogs"]
    assert (step["gasCost"], step["error"]) == (100, "stack underflow")


def test_a_place_above_64_bits_is_an_error_of_the_instruction(node: Node) -> None:
    # KECCAK256 of one byte at 2**64.
    call = {"from": ACCOUNT.address, "data": "0x600168010000000000000000" + "20"}
    steps = node.ask("debug_traceCall", call, "latest")["structLogs"]
    assert steps[-1]["error"] == "gas uint64 overflow"


def test_gas_given_to_a_new_contract_is_not_the_cost_of_create(node: Node) -> None:
    steps = traced(node, "spawn")["structLogs"]
    create = next(step for step in steps if step["op"] == "CREATE")
    assert 32_000 <= create["gasCost"] < 33_000


def test_the_call_tracer_shows_the_tree_of_messages(node: Node) -> None:
    tree = traced(node, "relay", "callTracer", withLog=True)
    bump, digest = tree.pop("calls")
    assert tree == {
        "type": "CALL",
        "from": ME,
        "to": shown(FIRST),
        "gas": hex(1_000_000),
        "gasUsed": tree["gasUsed"],
        "input": shown(calling("relay", SECOND, 3)),
        "output": f"0x{3:064x}",
        "value": "0x0",
    }
    assert (bump["from"], bump["to"]) == (shown(FIRST), shown(SECOND))
    (log,) = bump["logs"]
    assert (log["address"], log["position"]) == (shown(SECOND), "0x0")
    assert (digest["type"], digest["to"][-2:], "value" in digest) == ("STATICCALL", "02", False)


def test_the_call_tracer_shows_failures_and_drops_their_logs(node: Node) -> None:
    tree = traced(node, "attempt", "callTracer", withLog=True)
    (inner,) = tree["calls"]
    assert (inner["error"], inner["revertReason"]) == ("execution reverted", "no luck")
    assert [log["position"] for log in tree["logs"]] == ["0x1"]
    failed = traced(node, "fail", "callTracer")
    assert failed["error"] == "execution reverted"
    stray = traced(node, "stray", "callTracer")
    assert (stray["type"], stray["error"]) == ("CREATE", "invalid jump destination")
    assert "to" not in stray
    poor = traced(node, "poor", "callTracer", withLog=True)
    assert (poor["error"], poor["gasUsed"]) == ("out of gas", hex(40_000))


def logs_in(call: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the logs of a call and of its subcalls."""
    within = [log for each in call.get("calls", ()) for log in logs_in(each)]
    return [*call.get("logs", ()), *within]


def test_the_index_of_a_log_is_that_in_its_block(node: Node) -> None:
    config = {"tracer": "callTracer", "tracerConfig": {"withLog": True}}
    in_blocks: dict[str, dict[str, Any]] = {}
    indexes = []
    for own in NAMES.values():
        receipt = node.ask("eth_getTransactionReceipt", own)
        block = node.ask("debug_traceBlockByNumber", receipt["blockNumber"], config)
        in_blocks |= {each["txHash"]: each["result"] for each in block}
        expected = [log["logIndex"] for log in receipt["logs"]]
        trace = node.ask("debug_traceTransaction", own, config)
        assert sorted(log["index"] for log in logs_in(trace)) == expected
        assert trace == in_blocks[own]
        indexes += expected
    assert "0x1" in indexes


# Code that emits logs, and calls another contract in between.
_LOG, _STOP, _REVERT = "5f5fa0", "00", "5f5ffd"
_OUTER, _INNER, _OTHER = ("0x" + digit * 40 for digit in "abc")


def _call(address: str, size: str = "5f") -> str:
    return f"5f5f{size}5f5f73{address[2:]}5af150"


def overridden(node: Node, codes: dict[str, str], tracer: str, **config: Any) -> Any:
    """Trace a call of accounts that have these codes."""
    accounts = {name: {"code": f"0x{code}", "balance": "0x1"} for name, code in codes.items()}
    options = {"tracer": tracer, "tracerConfig": config, "stateOverrides": accounts}
    return node.ask("debug_traceCall", {"from": ME, "to": _OUTER}, "latest", options)


def test_logs_that_are_taken_back_have_no_index(node: Node) -> None:
    codes = {_OUTER: _LOG + _call(_INNER) + _LOG + _STOP, _INNER: _LOG + _REVERT}
    tree = overridden(node, codes, "callTracer", withLog=True)
    assert [log["index"] for log in tree["logs"]] == ["0x0", "0x1"]
    codes[_INNER] = _LOG + _STOP
    tree = overridden(node, codes, "callTracer", withLog=True)
    assert sorted(log["index"] for log in logs_in(tree)) == ["0x0", "0x1", "0x2"]


def test_an_old_contract_that_destroys_itself_is_still_there(node: Node) -> None:
    codes = {_OUTER: f"73{_OTHER[2:]}ff"}
    shown = overridden(node, codes, "prestateTracer", diffMode=True)
    assert shown["post"][_OUTER] == {"balance": "0x0"}


def test_a_new_contract_whose_end_is_taken_back_is_still_there(node: Node) -> None:
    init = "615fff5f526002601ef3"
    makes = f"69{init}5f52600a60165ff05f52"
    ends = "5f5f5f5f5f5f355af150"
    codes = {_OUTER: makes + _call(_INNER, "6020") + _STOP, _INNER: ends + _REVERT}
    shown = overridden(node, codes, "prestateTracer", diffMode=True)
    assert {"nonce": 1, "code": "0x5fff"}.items() <= max(
        shown["post"].values(), key=lambda each: "code" in each
    ).items()
    codes[_INNER] = ends + _STOP
    shown = overridden(node, codes, "prestateTracer", diffMode=True)
    assert not any("code" in each for each in shown["post"].values())


def test_the_code_that_an_account_borrows_is_shown(node: Node) -> None:
    borrowed = {_INNER: f"ef0100{_OTHER[2:]}", _OTHER: _STOP}
    within = overridden(node, borrowed | {_OUTER: _call(_INNER) + _STOP}, "prestateTracer")
    assert within[_OTHER]["code"] == f"0x{_STOP}"
    at_top = overridden(node, {_OUTER: borrowed[_INNER], _OTHER: _STOP}, "prestateTracer")
    assert at_top[_OTHER]["code"] == f"0x{_STOP}"


def test_call_tracer_shows_create_and_selfdestruct(node: Node) -> None:
    (made,) = traced(node, "spawn", "callTracer")["calls"]
    assert made["type"] == "CREATE"
    assert node.ask("eth_getCode", made["to"], "latest") == made["output"]
    (ended,) = traced(node, "ends", "callTracer")["calls"]
    assert ended == {
        "type": "SELFDESTRUCT",
        "from": traced(node, "ends", "callTracer")["to"],
        "to": ME,
        "gas": "0x0",
        "gasUsed": "0x0",
        "input": "0x",
        "value": "0x3",
    }


def test_messages_that_can_not_begin_are_shown(node: Node) -> None:
    paid, made = traced(node, "broke", "callTracer")["calls"]
    assert paid["error"] == made["error"] == "insufficient balance for transfer"
    assert (paid["to"], paid["value"], paid["input"]) == (ME, "0x1", f"0x{0:064x}")
    assert (made["type"], made["gasUsed"], made["input"]) == ("CREATE", "0x0", "0x0000")
    steps = traced(node, "broke")["structLogs"]
    call = next(step for step in steps if step["op"] == "CALL")
    assert call["gasCost"] > int(paid["gas"], 16)
    create = next(step for step in steps if step["op"] == "CREATE")
    # This includes the 2 gas for a word of init code.
    assert create["gasCost"] == 32_002


def test_messages_within_messages_can_be_left_out(node: Node) -> None:
    for name in ("relay", "spawn", "ends"):
        assert "calls" not in traced(node, name, "callTracer", onlyTopCall=True)


def test_messages_can_be_one_list(node: Node) -> None:
    block = node.ask("eth_getBlockByNumber", "0x2", False)
    top, bump = traced(node, "relay", "flatCallTracer")
    assert top == {
        "action": {
            "callType": "call",
            "from": ME,
            "gas": hex(1_000_000),
            "input": shown(calling("relay", SECOND, 3)),
            "to": shown(FIRST),
            "value": "0x0",
        },
        "blockHash": block["hash"],
        "blockNumber": 2,
        "result": {"gasUsed": top["result"]["gasUsed"], "output": f"0x{3:064x}"},
        "subtraces": 1,
        "traceAddress": [],
        "transactionHash": NAMES["relay"],
        "transactionPosition": 1,
        "type": "call",
    }
    assert (bump["traceAddress"], bump["action"]["to"]) == ([0], shown(SECOND))
    whole = traced(node, "relay", "flatCallTracer", includePrecompiles=True)
    assert [entry["traceAddress"] for entry in whole] == [[], [0], [1]]
    several = traced(node, "relay", "muxTracer", flatCallTracer={})
    assert several == {"flatCallTracer": [top, bump]}
    (alone,) = node.ask("debug_traceCall", call("total"), "0x2", {"tracer": "flatCallTracer"})
    assert (alone["blockHash"], alone["transactionHash"]) == (None, None)


def test_a_list_of_messages_has_their_kinds_and_errors(node: Node) -> None:
    _, failed = traced(node, "attempt", "flatCallTracer", convertParityErrors=True)
    assert failed["error"] == "Reverted"
    assert failed["result"]["output"].startswith("0x08c379a0")
    _, made = traced(node, "spawn", "flatCallTracer")
    assert (made["type"], made["action"]["creationMethod"]) == ("create", "create")
    code = node.ask("eth_getCode", made["result"]["address"], "latest")
    assert made["result"]["code"] == code
    _, ended = traced(node, "ends", "flatCallTracer")
    assert (ended["type"], ended["action"]["balance"]) == ("suicide", "0x3")
    (stray,) = traced(node, "stray", "flatCallTracer")
    assert (stray["error"], "result" in stray) == ("invalid jump destination", False)
    (short,) = traced(node, "short", "flatCallTracer")
    assert (short["error"], "result" in short) == ("invalid input length", False)
    (short,) = traced(node, "short", "flatCallTracer", convertParityErrors=True)
    assert short["error"] == "Built-in failed"


def test_the_prestate_is_that_before_the_transaction(node: Node) -> None:
    state = traced(node, "relay", "prestateTracer")
    before = node.ask("eth_getBalance", ME, "0x1")
    first = traced(node, "bump", "prestateTracer")[ME]
    assert (first["balance"], first["nonce"]) == (before, 2)
    assert state[ME]["nonce"] == 3
    assert shown(CODE[-10:]) not in state[shown(SECOND)]["code"]
    assert state[shown(SECOND)]["nonce"] == 1
    assert set(state[shown(SECOND)]["storage"].values()) == {f"0x{0:064x}"}
    bare = traced(node, "relay", "prestateTracer", disableCode=True, disableStorage=True)
    assert not {"code", "storage"} & set().union(*bare.values())


def test_prestate_diff_has_values_before_and_after(node: Node) -> None:
    diff = traced(node, "bump", "prestateTracer", diffMode=True)
    slot = f"0x{0:064x}"
    assert slot not in diff["pre"][shown(FIRST)].get("storage", {})
    assert diff["post"][shown(FIRST)]["storage"][slot] == f"0x{7:064x}"
    assert diff["post"][ME]["nonce"] == 3
    cleared = traced(node, "clear", "prestateTracer", diffMode=True)
    assert cleared["pre"][shown(FIRST)]["storage"] == {slot: f"0x{8:064x}"}
    assert cleared["post"][shown(FIRST)] == {}
    plain = traced(node, "plain", "prestateTracer", diffMode=True)
    assert plain["post"][TO.lower()] == {"balance": "0x5"}
    assert TO.lower() not in plain["pre"]
    made = traced(node, "spawn", "prestateTracer", diffMode=True)["post"]
    assert sum("code" in account for account in made.values()) == 1


def test_selectors_are_counted_but_not_those_of_precompiled_contracts(node: Node) -> None:
    assert traced(node, "relay", "4byteTracer") == {"0xeeec0e24-64": 1, "0xb20eb4c4-32": 1}


def test_several_tracers_run_at_once(node: Node) -> None:
    both = traced(node, "relay", "muxTracer", noopTracer={}, callTracer={})
    assert both == {"noopTracer": {}, "callTracer": traced(node, "relay", "callTracer")}


def test_a_block_is_traced_by_whatever_names_it(node: Node) -> None:
    by_number = node.ask("debug_traceBlockByNumber", "0x2", {"tracer": "callTracer"})
    assert [trace["txHash"] for trace in by_number] == list(NAMES.values())
    assert by_number[1]["result"] == traced(node, "relay", "callTracer")
    block = node.ask("eth_getBlockByNumber", "0x2", False)
    config = {"tracer": "callTracer"}
    assert node.ask("debug_traceBlockByHash", block["hash"], config) == by_number
    raw = node.ask("debug_getRawBlock", "0x2")
    assert node.ask("debug_traceBlock", raw, config) == by_number


def test_an_empty_block_has_no_traces(node: Node) -> None:
    node.block()
    assert node.ask("debug_traceBlockByNumber", "latest") == []


def test_a_call_is_traced_behind_any_transaction_of_a_block(node: Node) -> None:
    totals = []
    for index in ("0x0", "0x1", None):
        trace = node.ask("debug_traceCall", call("total"), "0x2", {"txIndex": index})
        totals.append(int(trace["returnValue"], 16))
    assert totals == [0, 7, 0]
    assert node.ask("debug_traceCall", call("total"), "0x2", {"txIndex": "0x99"}).startswith(
        "transaction index 153 out of range for block 0x"
    )


def test_a_call_is_traced_on_a_state_and_in_a_block_that_are_otherwise(node: Node) -> None:
    overridden = {
        "stateOverrides": {shown(FIRST): {"stateDiff": {f"0x{0:064x}": f"0x{41:064x}"}}}
    }
    trace = node.ask("debug_traceCall", call("bump", 1), "latest", overridden)
    assert int(trace["returnValue"], 16) == 42
    # NUMBER, PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN.
    tells_number = {"data": "0x435f5260205ff3"}
    config = {"blockOverrides": {"number": "0x1234"}}
    trace = node.ask("debug_traceCall", tells_number, "latest", config)
    assert int(trace["returnValue"], 16) == 0x1234


@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        ("debug_traceTransaction", [f"0x{0:064x}"], "transaction not found"),
        ("debug_traceBlockByNumber", ["0x0"], "genesis is not traceable"),
        ("debug_traceBlockByNumber", ["0x99"], "block #153 not found"),
        ("debug_traceBlockByHash", [f"0x{0:064x}"], f"block 0x{0:064x} not found"),
        (
            "debug_traceBlock",
            ["0x01"],
            "could not decode block: rlp: expected input list for types.extblock",
        ),
        (
            "debug_traceCall",
            [_SPIN, "pending"],
            "tracing on top of pending is not supported",
        ),
        (
            "debug_traceCall",
            [{**_SPIN, "gas": "0x5"}, "latest"],
            "tracing failed: intrinsic gas too low: have 5, want 21064",
        ),
        (
            "debug_traceCall",
            [_SPIN, "latest", {"timeout": "5"}],
            'time: missing unit in duration "5"',
        ),
        (
            "debug_traceCall",
            [_SPIN, "latest", {"timeout": "1m2x"}],
            'time: unknown unit "x" in duration "1m2x"',
        ),
        (
            "debug_traceCall",
            [_SPIN, "latest", {"timeout": "1h" * 51}],
            "time: expected at most 100 characters, got 102",
        ),
        (
            "debug_traceCall",
            [_SPIN, "latest", {"timeout": "20ms", "tracer": "noopTracer"}],
            "execution timeout (pass a longer timeout with the call)",
        ),
        (
            "debug_traceCall",
            [_SPIN, "latest"],
            "the response is larger than 2000000 bytes (raise NODERPC_MAX_RESPONSE_BYTES, or"
            " ask for less: methods of debug have the options limit, disableStack and"
            " onlyTopCall)",
        ),
        (
            "debug_traceCall",
            [_SPIN, "latest", {"tracer": "opcountTracer"}],
            "tracer: expected one of callTracer, flatCallTracer, prestateTracer, 4byteTracer,"
            " noopTracer, muxTracer, erc7562Tracer, got 'opcountTracer'",
        ),
        (
            "debug_traceCall",
            [_SPIN, "latest", {"tracer": "callTracer", "tracerConfig": {"withLog": 1}}],
            "json: cannot unmarshal number into Go struct field callTracerConfig.withLog of"
            " type bool",
        ),
        (
            "debug_traceCall",
            [_SPIN, "latest", {"limit": "1"}],
            "invalid argument 2: json: cannot unmarshal string into Go struct field"
            " TraceConfig.limit of type int",
        ),
    ],
)
def test_invalid_traces_get_errors(
    node: Node, method: str, params: list[Any], text: str
) -> None:
    assert node.ask(method, *params) == text


def test_a_block_of_bytes_must_follow_the_chain(node: Node) -> None:
    raw = bytes.fromhex(node.ask("debug_getRawBlock", "0x2")[2:])
    parent = bytes.fromhex(node.ask("eth_getBlockByNumber", "0x1", False)["hash"][2:])
    other = b"\x01" * 32
    assert node.ask("debug_traceBlock", shown(raw.replace(parent, other))) == (
        f"block {shown(other)} not found"
    )


def test_an_access_list_omits_accounts_that_are_warm_anyway(node: Node) -> None:
    made = node.ask("eth_createAccessList", call("relay", SECOND, 4))
    (entry,) = made["accessList"]
    assert (entry["address"], len(entry["storageKeys"])) == (shown(SECOND), 2)
    # With the access list the call costs what it reported; an estimate for a call with a list
    # must cover this.
    with_list = {**call("relay", SECOND, 4), "accessList": made["accessList"]}
    trace = node.ask("debug_traceCall", with_list, "latest", {"tracer": "callTracer"})
    assert trace["gasUsed"] == made["gasUsed"]
    # The called contract is in the list only for its slots.
    own = node.ask("eth_createAccessList", call("spawn", SECOND))["accessList"]
    assert [entry["address"] for entry in own] == [shown(FIRST)]


def test_an_access_list_of_a_failing_call_has_its_error(node: Node) -> None:
    made = node.ask("eth_createAccessList", call("fail", 1))
    assert made["error"] == "execution reverted"
    assert made["accessList"]
    dear = {**call("bump", 1), "value": hex(RICH)}
    assert "insufficient funds" in node.ask("eth_createAccessList", dear)


def test_a_block_of_bytes_may_be_any_that_follows(node: Node) -> None:
    raw = bytes.fromhex(node.ask("debug_getRawBlock", "0x1")[2:])
    # The first transaction of block 1 is in the block twice, so its nonce is used.
    header, (first, _) = decode_block(raw)
    txs = rlp.encode([first, first])
    twice = rlp.encode_list(encode_header(header) + txs + rlp.encode([]))
    assert node.ask("debug_traceBlock", shown(twice)) == (
        "tracing failed: nonce too low: next nonce 1, tx nonce 0"
    )
    far = rlp.encode_list(
        encode_header(replace(header, number=1 << 200)) + txs + rlp.encode([])
    )
    assert node.ask("debug_traceBlock", shown(far)) == (
        f"block {shown(header.parent_hash)} not found"
    )


def test_the_first_block_is_traced_on_the_state_of_the_genesis(node: Node) -> None:
    traces = node.ask("debug_traceBlockByNumber", "0x1", {"tracer": "callTracer"})
    receipts = node.ask("eth_getBlockReceipts", "0x1")
    assert [trace["result"]["type"] for trace in traces] == ["CREATE", "CREATE"]
    for trace, receipt in zip(traces, receipts, strict=True):
        assert trace["result"]["gasUsed"] == receipt["gasUsed"]
        assert trace["result"]["to"] == receipt["contractAddress"]


def test_delegated_code_is_traced_as_the_accounts_code(node: Node) -> None:
    authorization = OTHER.sign_authorization(
        {"chainId": CHAIN_ID, "address": to_checksum(FIRST), "nonce": 0}
    )
    account = OTHER.address.lower()
    (own,) = node.block(
        {
            "type": 4,
            "to": OTHER.address,
            "data": calling("bump", 5),
            "authorizationList": [authorization],
        }
    )
    assert node.ask("eth_getTransactionReceipt", own)["status"] == "0x1"
    tree = node.ask("debug_traceTransaction", own, {"tracer": "callTracer"})
    assert (tree["to"], int(tree["output"], 16)) == (account, 5)
    config = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}
    diff = node.ask("debug_traceTransaction", own, config)
    assert account not in diff["pre"]
    assert diff["post"][account]["code"] == f"0xef0100{FIRST.hex()}"
    assert diff["post"][account]["nonce"] == 1
    call_of_account = {"from": ME, "to": account, "data": shown(calling("bump", 1))}
    listed = node.ask("eth_createAccessList", call_of_account)
    assert [entry["address"] for entry in listed["accessList"]] == [account]

    # EIP-7702: half of an authorization's gas is refunded if the account exists.
    again = OTHER.sign_authorization(
        {"chainId": CHAIN_ID, "address": to_checksum(SECOND), "nonce": 1}
    )
    (own,) = node.block(
        {"type": 4, "to": FIRST, "data": calling("total"), "authorizationList": [again]}
    )
    steps = node.ask("debug_traceTransaction", own)["structLogs"]
    assert {step["refund"] for step in steps} == {12_500}


def test_a_creation_at_an_address_that_is_taken_burns_its_gas(node: Node) -> None:
    # CREATE2 with empty init code, POP, and the same again.
    (own,) = node.block({"data": bytes.fromhex("5f5f5f5ff5505f5f5f5ff55000")})
    tree = node.ask("debug_traceTransaction", own, {"tracer": "callTracer"})
    first, second = tree["calls"]
    assert (first["gasUsed"], "error" in first) == ("0x0", False)
    assert second["error"] == "contract address collision"
    assert second["gas"] == second["gasUsed"]
    before, after = _around(node, own, "CREATE2")
    # EIP-150: all but a 64th of the gas that is left after the instruction's own cost.
    left = before["gas"] - before["gasCost"]
    assert int(second["gas"], 16) == left - left // 64
    assert after["gas"] == left // 64


def _around(node: Node, own: str, op: str) -> tuple[Any, Any]:
    """Return the last step of an instruction, and the step after it."""
    steps = node.ask("debug_traceTransaction", own)["structLogs"]
    place = max(place for place, step in enumerate(steps) if step["op"] == op)
    return steps[place], steps[place + 1]


def test_an_out_of_gas_instruction_touches_no_state(node: Node) -> None:
    # PUSH1 1, PUSH0, SSTORE, with an empty and cold slot.
    (own,) = node.block({"data": bytes.fromhex("60015f55"), "gas": 63_000})
    last = node.ask("debug_traceTransaction", own)["structLogs"][-1]
    assert (last["op"], last["error"], last["gasCost"]) == ("SSTORE", "out of gas", 22_100)
    options = {"tracer": "prestateTracer", "tracerConfig": {"includeEmpty": True}}
    found = node.ask("debug_traceTransaction", own, options)
    assert not any("storage" in account for account in found.values())
    # BALANCE of a stranger, with less gas than a cold account costs.
    (own,) = node.block({"data": bytes.fromhex("61dead31"), "gas": 54_000})
    found = node.ask("debug_traceTransaction", own, options)
    assert shown((0xDEAD).to_bytes(20)) not in found


def test_a_trace_ends_with_the_time_of_a_call(tmp_path: Path) -> None:
    with machine(tmp_path, evm_timeout=1) as node:

        def trace(params: Any) -> Any:
            # This tracer sees each instruction, which takes longer.
            config = {"tracer": "prestateTracer"}
            return node.ask("debug_traceCall", params, "latest", config)

        for _ in range(2):
            assert trace(_SPIN) == (
                "execution timeout (to allow more seconds, raise NODERPC_EVM_TIMEOUT)"
            )
            # On a busy machine, a call that ends may time out, too.
            until(
                lambda: f"0x{FIRST.hex()}" in trace(call("total")), "a call that ends is traced"
            )
