"""Tests of the ``trace`` namespace of anvil and here; docs/ethereum/rpc.rst lists the
differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pytest

from tests.ethereum.protocol.signing import ACCOUNT, OTHER
from tests.ethereum.rpc.contract import CODE
from tests.ethereum.rpc.trace_chain import RICH, Node, machine, transaction

from .parity_story import story
from .test_anvil import anvil, ask

Trace = dict[str, Any]

_BLOCK_SIZE = 10
# Errors of anvil, each with ours; the others are equal.
ERRORS = {
    ("Insufficient balance for transfer", "insufficient balance for transfer"),
    ("StateChangeDuringStaticCall", "write protection"),
    ("CallNotAllowedInsideStatic", "write protection"),
    ("StackUnderflow", "Stack underflow"),
    ("OutOfOffset", "Out of bounds"),
    ("CreateCollision", "contract address collision"),
    ("CreateContractStartingWithEF", "invalid code: must not begin with 0xef"),
    ("CreateContractSizeLimit", "Out of gas"),
    ("Built-in failed", "Out of gas"),
    ("Built-in failed", "point is not on curve"),
    ("Built-in failed", "bad elliptic curve pairing size"),
}


@dataclass(frozen=True)
class Sides:
    """anvil and our node with the same transactions."""

    theirs: str
    ours: Node
    names: dict[str, str]
    """Names of the transactions by their hashes."""
    heights: range
    miner: str

    def both(self, method: str, *params: Any) -> tuple[Any, Any]:
        return ask(self.theirs, method, *params), self.ours.ask(method, *params)

    def replays(self, kind: str) -> Iterator[tuple[str, Any, Any]]:
        """Yield the name of each transaction, and what anvil and our node replay."""
        for height in self.heights:
            pairs = self.both("trace_replayBlockTransactions", hex(height), [kind])
            for theirs, ours in zip(*pairs, strict=True):
                name = self.names[ours["transactionHash"]]
                assert {**theirs, kind: None} == {**ours, kind: None}, name
                yield name, theirs[kind], ours[kind]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Yield anvil and our node after the story."""
    folder = tmp_path_factory.mktemp("parity")
    with anvil("--steps-tracing", "--hardfork", "osaka") as theirs, machine(folder) as ours:
        miner = ours.ask("eth_getBlockByNumber", "0x1", False)["miner"]
        ask(theirs, "anvil_setBalance", ACCOUNT.address, hex(RICH))
        ask(theirs, "anvil_setCoinbase", miner)
        for nonce in range(ours.nonce):
            raw = transaction(nonce, data=CODE)
            ask(theirs, "eth_sendRawTransaction", f"0x{raw.hex()}")
        mine(theirs, ours)
        transactions = list(story(ours.nonce).transactions.items())
        names = {}
        for start in range(0, len(transactions), _BLOCK_SIZE):
            for name, raw in transactions[start : start + _BLOCK_SIZE]:
                params = "eth_sendRawTransaction", f"0x{raw.hex()}"
                own = ours.ask(*params)
                assert ask(theirs, *params) == own
                names[own] = name
            ours.chain.produce()
            mine(theirs, ours)
        latest = int(ours.ask("eth_blockNumber"), 16)
        yield Sides(theirs, ours, names, range(2, latest + 1), miner)


def mine(theirs: str, ours: Node) -> None:
    """Mine a block of anvil with the base fee of our latest block."""
    fee = ours.ask("eth_getBlockByNumber", "latest", False)["baseFeePerGas"]
    ask(theirs, "anvil_setNextBlockBaseFeePerGas", fee)
    ask(theirs, "evm_mine")


def test_receipts_are_those_of_anvil(sides: Sides) -> None:
    assert len(sides.names) > 400
    for own, name in sides.names.items():
        theirs, ours = sides.both("eth_getTransactionReceipt", own)
        for member in ("status", "gasUsed", "blockNumber", "contractAddress"):
            assert theirs[member] == ours[member], name


def agreed(theirs: list[Trace], ours: list[Trace], name: str) -> set[tuple[str, str]]:
    """Check that calls are equal, but for the texts of errors, which are returned."""
    assert len(theirs) == len(ours), name
    errors = set()
    for their, our in zip(map(dict, theirs), map(dict, ours), strict=True):
        for side in their, our:
            side.pop("blockHash", None)
        error = their.pop("error", ""), our.pop("error", "")
        if error[0] != error[1]:
            errors.add(error)
        action = our["action"]
        if our["type"] == "suicide" and action["address"] == action["refundAddress"]:
            # anvil does not know the account that ends for itself.
            their["action"] = action
        assert their == our, name
    return errors


def test_calls_of_transactions_are_those_of_anvil(sides: Sides) -> None:
    errors, precompiled = set(), 0
    for own, name in sides.names.items():
        theirs, ours = sides.both("trace_transaction", own)
        if len(theirs) > len(ours):
            # anvil also lists calls of precompiled contracts that move no ether, as replays
            # don't.
            assert "precompile" in name
            precompiled += 1
        else:
            errors |= agreed(theirs, ours, name)
    assert precompiled > 10
    assert errors == ERRORS


def test_blocks_and_filters_have_the_calls_of_their_transactions(sides: Sides) -> None:
    calls = [sides.both("trace_transaction", each) for each in sides.names]
    expected = [list(chain.from_iterable(side)) for side in zip(*calls, strict=True)]
    blocks = [sides.both("trace_block", hex(height)) for height in sides.heights]
    assert [list(chain.from_iterable(side)) for side in zip(*blocks, strict=True)] == expected
    assert list(sides.both("trace_filter", {"fromBlock": "0x2"})) == expected
    account, other = ACCOUNT.address.lower(), OTHER.address.lower()
    both = {"fromAddress": [account], "toAddress": [other]}
    filters: tuple[tuple[Trace, Callable[[str, str | None], bool]], ...] = (
        ({"fromAddress": [account]}, lambda sender, to: sender == account),
        ({"toAddress": [account]}, lambda sender, to: to == account),
        (both, lambda sender, to: sender == account or to == other),
        ({**both, "mode": "intersection"}, lambda sender, to: (sender, to) == (account, other)),
    )
    for wanted, is_wanted in filters:
        limits = {"fromBlock": "0x2", "after": 1, "count": 100}
        found = sides.both("trace_filter", {**limits, **wanted})
        for traces, every in zip(found, expected, strict=True):
            matching = [trace for trace in every if is_wanted(*_parties(trace))]
            assert traces == matching[1:101], wanted
            assert traces


def _parties(trace: Trace) -> tuple[str, str | None]:
    """Return the sender and the recipient of a call, a creation or a self-destruction."""
    action, result = trace["action"], trace["result"] or {}
    if trace["type"] == "suicide":
        return action["address"], action["refundAddress"]
    return action["from"], action.get("to") or result.get("address")


def test_replayed_calls_are_those_of_anvil(sides: Sides) -> None:
    errors = set()
    for name, theirs, ours in sides.replays("trace"):
        errors |= agreed(theirs, ours, name)
    assert errors == ERRORS


def test_changes_of_the_state_are_those_of_anvil(sides: Sides) -> None:
    new, delegated = set(), set()
    for name, theirs, ours in sides.replays("stateDiff"):
        assert theirs.keys() == ours.keys(), name
        for address, change in ours.items():
            if change["nonce"] == {"+": "0x0"}:
                # anvil shows a new account without code as an empty one that changed.
                new.add(name)
                change["balance"] = {"*": {"from": "0x0", "to": change["balance"]["+"]}}
                change["code"] = change["nonce"] = "="
            elif "0xef01" in str(change["code"]):
                # anvil misses the code of a delegation.
                delegated.add(name)
                change["code"] = "="
            assert theirs[address] == change, (name, address)
    assert "transfer 0" in new
    assert len(delegated) == 3


_CALLS = "CALL", "CALLCODE", "DELEGATECALL", "STATICCALL", "CREATE", "CREATE2"


def instructions(trace: Trace) -> Iterator[Trace]:
    """Yield the instructions of a vmTrace by the time of their start."""
    for each in trace["ops"]:
        yield each
        if each["sub"] is not None:
            yield from instructions(each["sub"])


def test_instructions_are_those_of_anvil(sides: Sides) -> None:
    optimized, count = set(), 0
    for name, theirs, ours in sides.replays("vmTrace"):
        if name.startswith("deep "):
            # anvil swaps the subcalls of a call that makes several, which call others.
            continue
        if not theirs["ops"] and ours["ops"]:
            # anvil shows nothing if the last code that runs is a single STOP.
            optimized.add(name)
            continue
        for their, our in zip(instructions(theirs), instructions(ours), strict=True):
            assert our["pc"] == their["pc"], name
            if our["ex"] is not None:
                # anvil shows neither failures nor what a call pushes.
                assert (our["op"], our["cost"]) == (their["op"], their["cost"]), name
                if our["op"] not in _CALLS:
                    assert our["ex"]["push"] == their["ex"]["push"], name
                    assert our["ex"]["used"] == their["ex"]["used"] - our["cost"], name
                count += 1
    assert all(name.endswith((": stop", ": stop, paid")) for name in optimized)
    assert count > 10_000
