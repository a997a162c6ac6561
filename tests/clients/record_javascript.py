"""Record what geth reports for tracers in JavaScript, for transactions of all kinds.

``python -m tests.clients.record_javascript`` runs the transactions of
:mod:`.record_traces` in geth's EVM. The recording is gzipped JSON:

``transactions``
    Signed transactions in their order.
``tracers``
    Code and options of each tracer, by name.
``traces``
    For each transaction the outcome of each tracer, in the order of ``tracers``: an object with
    the result or the error.
``failures``
    Pairs of a tracer and its outcome for the transaction that has :data:`INDEX`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..ethereum.rpc.trace_chain import FIRST
from .record_traces import CONTRACTS, PROGRAMS, geth_traces, write

RECORDING = Path(__file__).parent.parent / "golden" / "javascript_1.17.10.json.gz"
INDEX = 3 + len(CONTRACTS) + list(PROGRAMS).index("subcalls")
"""Index of a transaction that calls, stores, logs and fails."""
NOTHING = "fault: function() {}, result: function() { return null }"

TRACERS: dict[str, dict[str, Any]] = {
    "opcodes": {
        "tracer": """{
            counts: {},
            step: function(log) {
                var name = log.op.toString();
                this.counts[name] = (this.counts[name] || 0) + 1;
            },
            fault: function() {},
            result: function() { return this.counts; }
        }"""
    },
    # The first steps of each transaction, and a checksum of all.
    "steps": {
        "tracer": """{
            first: [], sum: 0, count: 0,
            step: function(log) {
                var step = [
                    log.op.toNumber(), log.op.isPush(), log.getPC(), log.getGas(),
                    log.getCost(), log.getDepth(), log.getRefund(), log.stack.length(),
                    log.memory.length(), log.getError()
                ];
                if (this.first.length < 150) this.first.push(step);
                this.count += 1;
                for (var i = 2; i < 9; i++) this.sum = (this.sum * 31 + step[i]) % 1000003;
            },
            fault: function() {},
            result: function() { return [this.count, this.sum, this.first]; }
        }"""
    },
    "faults": {
        "tracer": """{
            found: [],
            step: function(log) {
                if (log.getError() !== undefined) this.found.push(log.getError());
            },
            fault: function(log, db) {
                this.found.push([
                    log.op.toString(), log.getPC(), log.getGas(), log.getCost(), log.getDepth(),
                    log.getRefund(), log.stack.length(), log.memory.length(), log.getError(),
                    toHex(log.contract.getAddress()), db.exists(log.contract.getAddress())
                ]);
            },
            result: function() { return this.found; }
        }"""
    },
    "calls": {
        "tracer": """{
            open: [{calls: []}],
            enter: function(frame) {
                var call = {
                    type: frame.getType(), from: toHex(frame.getFrom()),
                    to: toHex(frame.getTo()), input: toHex(frame.getInput()),
                    gas: frame.getGas(), calls: []
                };
                if (frame.getValue() !== undefined) call.value = frame.getValue().toString(16);
                this.open.push(call);
            },
            exit: function(ended) {
                var call = this.open.pop();
                call.gasUsed = ended.getGasUsed();
                call.output = toHex(ended.getOutput());
                call.error = ended.getError();
                this.open[this.open.length - 1].calls.push(call);
            },
            fault: function() {},
            result: function(ctx) {
                var top = this.open.pop();
                top.type = ctx.type;
                top.from = toHex(ctx.from);
                top.to = toHex(ctx.to);
                top.input = toHex(ctx.input);
                top.output = toHex(ctx.output);
                top.value = ctx.value;
                top.error = ctx.error;
                top.numbers = [ctx.block, ctx.gas, ctx.gasUsed, ctx.gasPrice];
                top.txHash = toHex(ctx.txHash);
                top.sizes = [ctx.blockHash.length, ctx.coinbase.length];
                top.members = Object.keys(ctx).sort();
                return top;
            }
        }"""
    },
    "storage": {
        "tracer": """{
            seen: [],
            step: function(log, db) {
                var name = log.op.toString();
                if (name != 'SLOAD' && name != 'SSTORE' || log.stack.length() < 1) return;
                var owner = log.contract.getAddress();
                var slot = toWord(log.stack.peek(0).toString(16));
                var entry = [toHex(owner), toHex(slot), toHex(db.getState(owner, slot))];
                if (name == 'SSTORE' && log.stack.length() > 1) entry.push(log.stack.peek(1));
                this.seen.push(entry);
            },
            fault: function() {},
            result: function(ctx, db) {
                return this.seen.map(function(entry) {
                    var now = db.getState(toAddress(entry[0]), toWord(entry[1]));
                    return entry.concat(toHex(now));
                });
            }
        }"""
    },
    # Words and memory of instructions that read memory, and the contracts that run them.
    "memory": {
        "tracer": """{
            seen: [],
            words: {
                RETURN: 2, REVERT: 2, KECCAK256: 2, MSTORE: 2, CREATE: 3, CREATE2: 4,
                LOG0: 2, LOG1: 3, LOG2: 4, CALL: 7, CALLCODE: 7, DELEGATECALL: 6, STATICCALL: 6
            },
            step: function(log, db) {
                var name = log.op.toString(), count = this.words[name];
                if (count === undefined || log.stack.length() < count) return;
                if (log.getError() !== undefined) return;
                var entry = [name, log.getDepth()];
                for (var i = 0; i < count; i++) entry.push(log.stack.peek(i).toString(16));
                entry.push(toHex(log.memory.slice(0, Math.min(log.memory.length() + 3, 70))));
                if (log.memory.length() >= 32) {
                    entry.push(log.memory.getUint(log.memory.length() - 32));
                }
                if (name.indexOf('CALL') >= 0) {
                    var to = toAddress(log.stack.peek(1).toString(16));
                    entry.push(isPrecompiled(to), db.getBalance(to));
                    entry.push(db.getNonce(to), db.getCode(to).length);
                }
                var contract = log.contract;
                entry.push(toHex(contract.getCaller()), toHex(contract.getAddress()));
                entry.push(contract.getValue(), toHex(slice(contract.getInput(), 0, 0)));
                entry.push(contract.getInput().length);
                this.seen.push(entry);
            },
            fault: function() {},
            result: function() { return this.seen; }
        }"""
    },
    "setup": {
        "tracer": """{
            setup: function(text) { this.options = [typeof text, JSON.parse(text)]; },
            fault: function() {},
            result: function() { return this.options; }
        }""",
        "tracerConfig": {"wanted": ["x", 1], "no": None},
    },
}


def of_result(expression: str) -> str:
    """Return a tracer with this result."""
    return f"{{fault: function() {{}}, result: function(ctx, db) {{ return {expression} }}}}"


def of_step(statements: str) -> str:
    """Return a tracer with these statements in each step."""
    return f"{{step: function(log, db) {{ {statements} }}, {NOTHING}}}"


VALUES = (
    "1",
    "1.5",
    "-0",
    "1e300",
    "'text'",
    "true",
    "null",
    "undefined",
    "[undefined, null, NaN, Infinity, function() {}]",
    "({a: undefined, b: function() {}, c: new Date(0), d: /x/})",
    "({toJSON: function() { return 7 }})",
    "toHex(new Uint8Array([1, 2, 255]))",
    "[toHex([1, 2, 255]), toHex([]), toHex([256, -1, 1.9])]",
    "new Uint8Array([1, 2])",
    "[toWord('0x01'), toWord('f'), toWord('0xfgff'), toWord([1]), toWord('')]",
    "[toAddress('0x01'), toAddress('11223344556677889900112233445566778899001122')]",
    "[toHex(toContract('0x01', 0)), toHex(toContract([1], 1))]",
    "toHex(toContract(ctx.from, 300)).split()",
    "[toHex(toContract2('0x01', '0x02', '0x03')), toHex(toContract2(ctx.to, '', []))]",
    "[isPrecompiled('0x01'), isPrecompiled(toAddress('0x11')), isPrecompiled('0x0100')]",
    "[isPrecompiled('0x12'), isPrecompiled(ctx.to)]",
    "[toHex(slice([1, 2, 3], 1, 2)), toHex(slice(ctx.from, 0, 20)), slice([], 0, 0).length]",
    "[db.getBalance([1]), db.getNonce([1]), db.exists([1]), db.getCode([1]).length]",
    f"[toHex(db.getState(toAddress('{FIRST.hex()}'), toWord('0x00')))]",
    "[typeof ctx.gas, typeof ctx.txIndex, typeof ctx.block, typeof ctx.value]",
    "[ctx.time, ctx.intrinsicGas, ctx.height]",
    "typeof this.step",
    "[1, 2, 3].map(x => x * 2).includes(4)",
    "Object.keys({...{a: 1}, b: 2})",
    "bigInt(5)",
    "[bigInt('123456789012345678901234567890'), bigInt('-7'), bigInt('1e20'), bigInt()]",
    "[bigInt('ff', 16), bigInt('-FF', 16), bigInt('z', 36), bigInt('101', 2)]",
    "[bigInt('ff', 16).toString(), bigInt(255).toString(16), bigInt(-255).toString(2)]",
    "[bigInt(7).add(3), bigInt(7).plus('3'), bigInt(7).minus(bigInt(9))]",
    "[bigInt(7).subtract(1), bigInt('12', 10)]",
    "[bigInt(7).multiply(6), bigInt('7000000000000000000').times(6), bigInt(7).square()]",
    "[bigInt(7).divide(2), bigInt(-7).divide(2), bigInt(-7).over(-2), bigInt(7).mod(-3)]",
    "[bigInt(-7).mod(3), bigInt(-7).remainder(3), bigInt(-7).divmod(3)]",
    "[bigInt(2).pow(100), bigInt(2).pow(0), bigInt(2).pow(-1), bigInt(0).pow(0)]",
    "[bigInt(1).pow(-1), bigInt(-1).pow(3), bigInt(4).modPow(13, 497), bigInt(3).modInv(11)]",
    "[bigInt(6).and(3), bigInt(6).or(3), bigInt(6).xor(3), bigInt(6).not(), bigInt(-6).and(3)]",
    "[bigInt(1).shiftLeft(70), bigInt(-5).shiftRight(1), bigInt(5).shiftRight(70)]",
    "[bigInt(8).shiftLeft(-2), bigInt(8).shiftRight(-2)]",
    "[bigInt(1).compare(2), bigInt(2).compare(2), bigInt(3).compareTo(2)]",
    "[bigInt(-3).compareAbs(2), bigInt(-2).compareAbs(2)]",
    "[bigInt(1).equals(1), bigInt(1).eq(2), bigInt(1).notEquals(1), bigInt(1).neq(2)]",
    "[bigInt(1).gt(0), bigInt(1).greater(1), bigInt(1).geq(1), bigInt(1).greaterOrEquals(2)]",
    "[bigInt(1).lt(2), bigInt(1).lesser(1), bigInt(1).leq(1), bigInt(1).lesserOrEquals(0)]",
    "[bigInt(2).isEven(), bigInt(2).isOdd(), bigInt(2).isUnit(), bigInt(-1).isUnit()]",
    "[bigInt(0).isZero(), bigInt(1).isPositive(), bigInt(-1).isNegative()]",
    "[bigInt(6).isDivisibleBy(3), bigInt(6).isDivisibleBy(4), bigInt(6).isDivisibleBy(1)]",
    "[bigInt(5).next(), bigInt(5).prev(), bigInt(-5).abs(), bigInt(5).negate()]",
    "[bigInt.zero, bigInt.one, bigInt.minusOne]",
    "[bigInt.isInstance(bigInt(1)), bigInt.isInstance(1)]",
    "[bigInt.max(1, 2), bigInt.min(1, 2), bigInt.gcd(12, 18), bigInt.lcm(4, 6)]",
    "[bigInt(5) + 1, bigInt(5) < 6, '' + bigInt(5), bigInt(5).toJSNumber()]",
    "[ctx.value + 1, typeof ctx.value.toString(16), JSON.stringify({v: ctx.value})]",
    "bigInt('115792089237316195423570985008687907853269984665640564039457584007913129639935')",
    "undeclared",
    "undeclared.member",
    "(function() { throw new Error('reason') })()",
    "(function() { throw new TypeError('reason') })()",
    "(function() { throw 'reason' })()",
    "(function() { throw {toString: function() { return 'reason' }} })()",
    "toHex('0x01')",
    "toHex(1)",
    "toHex({})",
    "toWord(1)",
    "slice([1, 2], 1, 3)",
    "slice([1, 2], -1, 1)",
    "slice([1, 2], 2, 1)",
    "slice('0x01', 0, 1)",
    "db.getBalance('0x01')",
    "db.getState(ctx.to, '0x01')",
    "db.exists('0x01')",
)
STEPS = (
    "throw new Error('reason')",
    "throw 'reason'",
    "log.stack.peek(0)",
    "log.stack.peek(-1)",
    "log.stack.peek(2000)",
    "try { log.stack.peek(2000) } catch (error) {}",
    "log.memory.slice(-1, 1)",
    "log.memory.slice(2, 1)",
    "log.memory.slice(5, 1025 * 1024 * 2)",
    "log.memory.getUint(0)",
    "log.memory.getUint(-64)",
    "log.memory.getUint(1e9)",
    "missing()",
)
FAILURES: tuple[dict[str, Any], ...] = (
    *({"tracer": of_result(each)} for each in VALUES),
    *({"tracer": of_step(each)} for each in STEPS),
    *(
        {"tracer": code}
        for code in (
            "{fault: function() {}}",
            "{result: function() {}}",
            "{}",
            "1",
            "'text'",
            f"{{{NOTHING}, enter: function() {{}}}}",
            f"{{{NOTHING}, exit: function() {{}}}}",
            f"{{{NOTHING}, enter: function() {{ throw 'reason' }}, exit: function() {{}}}}",
            f"{{{NOTHING}, exit: function() {{ throw 'reason' }}, enter: function() {{}}}}",
            "{fault: function() { throw new Error('reason') }, result: function() {}}",
            f"{{{NOTHING}, setup: function() {{ throw new Error('reason') }}}}",
            f"{{{NOTHING}, setup: function(text) {{ throw text }}}}",
            "(function() { throw new Error('reason') })()",
            "undeclared.member",
            "{x",
            "}",
        )
    ),
    *(
        {"tracer": of_result("this.text"), "tracerConfig": None},
        {
            "tracer": "{setup: function(text) { this.text = text }, fault: function() {},"
            " result: function() { return this.text }}",
            "tracerConfig": "x",
        },
    ),
)


def main() -> None:
    """Write the recording."""
    found = geth_traces([*TRACERS.values(), *FAILURES])
    size = len(TRACERS)
    made = {
        "tracers": TRACERS,
        "traces": [each[:size] for each in found],
        "failures": list(zip(FAILURES, found[INDEX][size:], strict=True)),
    }
    write(RECORDING, made)


if __name__ == "__main__":
    main()
