"""Tests of tracers in JavaScript, over HTTP, against geth's traces of the same transactions."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.installation import install_hint
from tests.clients.record_javascript import INDEX, RECORDING, of_result, of_step
from tests.ethereum.protocol.signing import ACCOUNT

from .trace_chain import Node, machine, machine_with, recorded

RECORDED = recorded(RECORDING)
# The first two transactions create the contracts in block 1.
TXS = [bytes.fromhex(each[2:]) for each in RECORDED["transactions"]][2:]
TRACES = RECORDED["traces"][2:]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with the recorded transactions in block 2."""
    with machine_with(TXS, tmp_path_factory.mktemp("javascript")) as made:
        yield made


def hash_of(raw: bytes) -> str:
    return f"0x{decode(raw).hash.hex()}"


def outcome(node: Node, raw: bytes, options: dict[str, Any]) -> dict[str, Any]:
    """Return the result or the error of a trace, as in the recording."""
    reply = node.post("debug_traceTransaction", (hash_of(raw), options))
    if "result" in reply:
        return {"result": reply["result"]}
    return {"error": reply["error"]["message"]}


@pytest.mark.parametrize("name", RECORDED["tracers"])
def test_traces_of_transactions_are_equal_to_those_of_geth(node: Node, name: str) -> None:
    options, index = RECORDED["tracers"][name], list(RECORDED["tracers"]).index(name)
    for raw, expected in zip(TXS, TRACES, strict=True):
        assert outcome(node, raw, options) == expected[index]


# The engines place errors at different instructions of an expression, and explain the syntax in
# other words.
_PLACE = re.compile(r" at (\S+ \()?<eval>:\d+:\d+(\(\d+\))?\)?")


def comparable(found: dict[str, Any]) -> dict[str, Any]:
    if "error" in found:
        error = _PLACE.sub("", found["error"])
        return {"error": re.sub("^SyntaxError: .*", "SyntaxError", error)}
    return found


@pytest.mark.parametrize(("tracer", "expected"), RECORDED["failures"])
def test_outcomes_are_equal_to_those_of_geth(
    node: Node, tracer: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = outcome(node, TXS[INDEX - 2], tracer)
    assert comparable(found) == comparable(expected)


COUNTER = """{
    count: 0,
    step: function() { this.count += 1; },
    fault: function() {},
    result: function() { return this.count; }
}"""


def test_blocks_and_calls_are_traced_like_transactions(node: Node) -> None:
    options = RECORDED["tracers"]["opcodes"]
    expected = [each[0]["result"] for each in TRACES]
    traces = node.ask("debug_traceBlockByNumber", "0x2", options)
    assert [trace["result"] for trace in traces] == expected
    assert node.ask("debug_traceBlock", node.ask("debug_getRawBlock", "0x2"), options) == traces
    for index, (raw, counts) in enumerate(zip(TXS, expected, strict=True)):
        tx = decode(raw)
        if tx.authorizations:
            continue
        call = {
            "from": ACCOUNT.address,
            "to": tx.to and f"0x{tx.to.hex()}",
            "data": f"0x{tx.data.hex()}",
            "value": hex(tx.value),
            "gas": hex(tx.gas),
        }
        within = {**options, "txIndex": hex(index)}
        assert node.ask("debug_traceCall", call, "0x2", within) == counts


def test_an_exception_is_an_error_of_one_transaction_of_a_block(node: Node) -> None:
    plain = node.ask("debug_traceBlockByNumber", "0x2", {"tracer": COUNTER})
    failing = COUNTER.replace("this.count += 1", "if (++this.count > 200) throw 'reason'")
    error = "reason    in server-side tracer function 'step'"
    expected = [
        trace if trace["result"] <= 200 else {"txHash": trace["txHash"], "error": error}
        for trace in plain
    ]
    assert {trace["result"] > 200 for trace in plain} == {True, False}
    assert node.ask("debug_traceBlockByNumber", "0x2", {"tracer": failing}) == expected
    broken = node.ask("debug_traceBlockByNumber", "0x2", {"tracer": "{fault() {}}"})
    missing = "trace object must expose a function result()"
    assert broken == [{"txHash": trace["txHash"], "error": missing} for trace in plain]


def test_the_place_of_a_transaction_is_known_and_that_of_a_call_is_not(node: Node) -> None:
    code = of_result("[toHex(ctx.blockHash || []), toHex(ctx.txHash || []), ctx.txIndex]")
    block = node.ask("eth_getBlockByNumber", "0x2", False)
    expected = [block["hash"], hash_of(TXS[3]), 3]
    assert node.ask("debug_traceTransaction", hash_of(TXS[3]), {"tracer": code}) == expected
    call = {"from": ACCOUNT.address, "to": ACCOUNT.address}
    assert node.ask("debug_traceCall", call, "0x2", {"tracer": code}) == ["0x", "0x", None]
    coinbase = of_result("[toHex(ctx.coinbase), ctx.block]")
    assert node.ask("debug_traceCall", call, "0x2", {"tracer": coinbase}) == [block["miner"], 2]


def test_the_mux_tracer_runs_code(node: Node) -> None:
    tracers = {COUNTER: {}, "noopTracer": {}, RECORDED["tracers"]["setup"]["tracer"]: [1]}
    options = {"tracer": "muxTracer", "tracerConfig": tracers}
    counts = TRACES[INDEX - 2][0]["result"]
    assert node.ask("debug_traceTransaction", hash_of(TXS[INDEX - 2]), options) == dict(
        zip(tracers, (sum(counts.values()), {}, ["string", [1]]), strict=True)
    )


def test_the_mux_tracer_runs_few_tracers_in_javascript(node: Node) -> None:
    for count in (4, 5):
        tracers: dict[str, Any] = {of_result(str(each)): {} for each in range(count)}
        options = {"tracer": "muxTracer", "tracerConfig": {**tracers, "noopTracer": {}}}
        found = node.ask("debug_traceTransaction", hash_of(TXS[0]), options)
        if count == 4:
            assert found == {
                **{code: index for index, code in enumerate(tracers)},
                "noopTracer": {},
            }
        else:
            assert "at most 4 tracers in JavaScript" in found


def test_accounts_that_a_message_creates_exist_after_it(node: Node) -> None:
    accounts = "[ctx.from, ctx.to, toAddress('0x1234')]"
    code = of_result(f"{accounts}.map(each => [db.exists(each), db.getNonce(each) > 0])")
    creation = {"from": ACCOUNT.address, "data": "0x00"}
    expected = [[True, True], [True, True], [False, False]]
    assert node.ask("debug_traceCall", creation, "latest", {"tracer": code}) == expected


def test_any_text_can_be_a_result(node: Node) -> None:
    text = "äß€😀\0\\"
    code = of_result(json.dumps(text))
    assert node.ask("debug_traceTransaction", hash_of(TXS[0]), {"tracer": code}) == text


def test_code_can_reach_nothing_outside(node: Node) -> None:
    names = ["std", "os", "host", "require", "process", "console", "fetch", "WebAssembly"]
    code = of_result(f"{names}.filter(name => name in globalThis)")
    assert node.ask("debug_traceTransaction", hash_of(TXS[0]), {"tracer": code}) == []
    loading = of_step("import('os').then(found => { throw found }, () => {}); Atomics.wait(1)")
    assert "TypeError" in node.ask(
        "debug_traceTransaction", hash_of(TXS[0]), {"tracer": loading}
    )


def test_code_can_t_reach_the_functions_that_ask_the_host(node: Node) -> None:
    code = of_step(
        "Error.prepareStackTrace = (_, frames) =>"
        " frames.map(each => each.getFunction()).find(each => each?.name === 'get');"
        "try { log.stack.peek(1e6) } catch (error) { error.stack('created', 'none', 1) }"
    )
    error = node.ask("debug_traceTransaction", hash_of(TXS[INDEX - 2]), {"tracer": code})
    assert str(error).startswith("tracer accessed out of bound stack")


def test_exceptions_do_not_last(node: Node) -> None:
    own = hash_of(TXS[0])
    for _ in range(3):
        for code in (of_step("null.member"), of_result("toHex(1)"), of_result("missing")):
            assert "in server-side" in node.ask("debug_traceTransaction", own, {"tracer": code})
        assert node.ask("debug_traceTransaction", own, {"tracer": COUNTER}) > 0


# Functions of a tracer. Each of them runs for the recorded transaction.
FUNCTIONS = "setup", "step", "fault", "enter", "exit", "result"


def with_function(name: str, body: str) -> str:
    """Return a tracer whose function of this name has this body."""
    bodies = dict.fromkeys(FUNCTIONS, "") | {name: body}
    return f"{{{', '.join(f'{each}() {{ {body} }}' for each, body in bodies.items())}}}"


LOOP = "for (;;) {}"
ENDLESS = {
    "code": "(function() { for (;;) {} })()",
    **{name: with_function(name, LOOP) for name in FUNCTIONS},
    "getter": of_result("({get member() { for (;;) {} }})"),
    "toJSON": of_result("({toJSON() { for (;;) {} }})"),
    "caught": of_result("(function() { for (;;) { try { for (;;) {} } catch {} } })()"),
    "expression": of_result("/^(a+)+$/.test('a'.repeat(50) + 'b')"),
    "native function": of_result("Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)"),
    "exception's text": of_result("(() => { throw {toString() { for (;;) {} }} })()"),
    "exception's stack": with_function("setup", "throw {get stack() { for (;;) {} }}"),
    "questions": of_result("(() => { for (;;) db.getBalance(ctx.from) })()"),
    "numbers": of_result("(() => { for (let x = bigInt(1); ; x = x.add(1)); })()"),
}


@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS)
def test_code_that_does_not_return_is_stopped(node: Node, code: str) -> None:
    own = hash_of(TXS[INDEX - 2])
    options = {"tracer": code, "timeout": "200ms"}
    assert node.ask("debug_traceTransaction", own, options) == (
        "execution timeout (pass a longer timeout with the call)"
    )
    assert node.ask("debug_traceTransaction", own, {"tracer": COUNTER}) > 0


# The first one is the longest that Go's durations of 64 bits can have, in hours.
@pytest.mark.parametrize("timeout", ["2562047h", "1m"])
def test_a_long_timeout_is_accepted(node: Node, timeout: str) -> None:
    options = {"tracer": COUNTER, "timeout": timeout}
    assert node.ask("debug_traceTransaction", hash_of(TXS[INDEX - 2]), options) > 0


def test_code_is_stopped_after_the_time_of_a_call(tmp_path: Path) -> None:
    with machine(tmp_path, evm_timeout=1) as node:
        call = {"from": ACCOUNT.address, "to": ACCOUNT.address}
        for _ in range(2):
            options = {"tracer": with_function("result", LOOP)}
            assert node.ask("debug_traceCall", call, "latest", options) == (
                "execution timeout (to allow more seconds, raise NODERPC_EVM_TIMEOUT)"
            )


LARGE = {
    "array": with_function("result", "let all = []; for (;;) all.push({})"),
    "array in steps": with_function(
        "step", "this.all ??= []; this.all.push(Array(1e6).fill(1))"
    ),
    "text": with_function("result", "let all = []; for (;;) all.push('x'.repeat(1e7))"),
    "bytes": with_function("setup", "let all = []; for (;;) all.push(new Uint8Array(1e7))"),
    "buffer": with_function("enter", "new ArrayBuffer(1e9)"),
    "shared buffer": with_function("exit", "new SharedArrayBuffer(1e9)"),
    "functions": with_function(
        "fault", "let f = () => 1; for (;;) { let g = f; f = () => g() }"
    ),
    "map": with_function("result", "let all = new Map(); for (let i = 0; ; i++) all.set(i, i)"),
    "names": with_function("result", "let all = {}; for (let i = 0; ; i++) all['x' + i] = i"),
    "code": "(function() { let all = []; for (;;) all.push([]) })()",
    "result": with_function("result", "return Array(5e6).fill('0123456789')"),
}


@pytest.mark.parametrize("code", LARGE.values(), ids=LARGE)
def test_memory_is_limited(node: Node, code: str) -> None:
    own = hash_of(TXS[INDEX - 2])
    error = str(node.ask("debug_traceTransaction", own, {"tracer": code}))
    assert error.startswith("InternalError: out of memory")
    assert error.endswith(" (the code of a tracer may use 64 MB)")
    assert node.ask("debug_traceTransaction", own, {"tracer": COUNTER}) > 0


DEEP = {
    "calls": with_function("result", "const f = () => f() + 1; f()"),
    "calls in steps": with_function("step", "this.step()"),
    "result": with_function(
        "result", "let x = []; for (let i = 0; i < 1e5; i++) x = [x]; return x"
    ),
    "code": "eval('['.repeat(1e5))",
    "getter": of_result("({get member() { return this.member }}).member"),
}


@pytest.mark.parametrize("code", DEEP.values(), ids=DEEP)
def test_depth_is_limited(node: Node, code: str) -> None:
    own = hash_of(TXS[INDEX - 2])
    error = str(node.ask("debug_traceTransaction", own, {"tracer": code}))
    assert error.startswith("RangeError: Maximum call stack size exceeded")
    assert node.ask("debug_traceTransaction", own, {"tracer": COUNTER}) > 0


def test_a_tree_of_the_deepest_calls_can_be_built(node: Node) -> None:
    code = of_result(
        "(function make(depth) { return depth ? {calls: [make(depth - 1)]} : {} })(1024)"
    )
    found = node.ask("debug_traceTransaction", hash_of(TXS[0]), {"tracer": code})
    depth = 0
    while found:
        (found,) = found["calls"]
        depth += 1
    assert depth == 1024


@pytest.mark.parametrize("text", ["'x'.repeat(5e6)", "'€'.repeat(2e6)"])
def test_the_size_of_a_result_is_limited(node: Node, text: str) -> None:
    own, code = hash_of(TXS[0]), of_result(text)
    assert str(node.ask("debug_traceTransaction", own, {"tracer": code})).startswith(
        "the response is larger than 5000000 bytes"
    )


@pytest.mark.parametrize(
    ("thrown", "shown"),
    [(r"'\ud800'", "\ufffd"), (r"'x'.repeat(999) + '😀'", "x" * 999 + "\ufffd")],
)
def test_the_text_of_an_exception_may_end_within_a_character(
    node: Node, thrown: str, shown: str
) -> None:
    error = node.ask(
        "debug_traceTransaction", hash_of(TXS[0]), {"tracer": of_step(f"throw {thrown}")}
    )
    assert error == f"{shown}    in server-side tracer function 'step'"


def test_the_text_of_an_exception_is_limited(node: Node) -> None:
    code = of_step("throw 'x'.repeat(1e6)")
    error = node.ask("debug_traceTransaction", hash_of(TXS[0]), {"tracer": code})
    assert error == "x" * 1000 + "    in server-side tracer function 'step'"


def test_without_the_extra_code_is_refused(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "quickjs", None)
    own = hash_of(TXS[0])
    assert node.ask("debug_traceTransaction", own, {"tracer": "{step: function() {}}"}) == (
        "tracer: expected one of callTracer, flatCallTracer, prestateTracer, 4byteTracer,"
        " noopTracer, muxTracer, erc7562Tracer, got '{step: function() {}}'; tracers in"
        f" JavaScript need the extra js: {install_hint('js')}"
    )
    assert node.ask("debug_traceTransaction", own, {"tracer": "noopTracer"}) == {}
