"""Tests of transactions traced by anvil and here; docs/ethereum/rpc.rst lists the
differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.ethereum.protocol.signing import ACCOUNT
from tests.ethereum.rpc.contract import CODE, calling
from tests.ethereum.rpc.trace_chain import FIRST, RICH, SECOND, Node, machine, transaction

from .test_anvil import anvil, ask

STORY: dict[str, dict[str, Any]] = {
    "bump": {"to": FIRST, "data": calling("bump", 7)},
    "relay": {"to": FIRST, "data": calling("relay", SECOND, 3)},
    "attempt": {"to": FIRST, "data": calling("attempt", SECOND, 3)},
    "spawn": {"to": FIRST, "data": calling("spawn", SECOND)},
    "fail": {"to": FIRST, "data": calling("fail", 9)},
    "plain": {"to": b"\x2b" * 20, "value": 5},
    "clear": {"to": FIRST, "data": calling("clear")},
    "poor": {"to": FIRST, "data": calling("bump", 1), "gas": 40_000},
    # SSTORE of 1 and of 0, then SELFDESTRUCT with address 0 as the beneficiary.
    "ends": {"data": bytes.fromhex("60015f555f5f5533ff")},
    "again": {"to": FIRST, "data": calling("bump", 7)},
    # CALL of clear(), then SLOAD: the refund of a call belongs to the transaction.
    "within": {
        "data": bytes.fromhex(
            f"63{calling('clear').hex()}5f525f5f6004601c5f73{FIRST.hex()}5af15f545000"
        )
    },
    # CALL of the caller with 1 wei, which the contract does not have.
    "broke": {"data": bytes.fromhex("5f5f60205f6001335af15000")},
}
Sides = tuple[str, Node, dict[str, str]]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Yield anvil's URL, our node, and the hashes of the scenario."""
    folder = tmp_path_factory.mktemp("traces")
    with anvil("--steps-tracing") as theirs, machine(folder) as ours:
        ask(theirs, "anvil_setBalance", ACCOUNT.address, hex(RICH))
        hashes = []
        created = [{"data": CODE}, {"data": CODE}]
        for nonce, fields in enumerate([*created, *STORY.values()]):
            raw = transaction(nonce, **fields)
            hashes.append(ask(theirs, "eth_sendRawTransaction", f"0x{raw.hex()}"))
            # Each transaction is in a separate block, as anvil adds up the gas of a block's
            # transactions.
            ask(theirs, "evm_mine")
        own = [each for fields in STORY.values() for each in ours.block(fields)]
        assert own == hashes[2:]
        yield theirs, ours, dict(zip(STORY, own, strict=True))


def both(sides: Sides, name: str, **config: Any) -> tuple[Any, Any]:
    theirs, ours, hashes = sides
    params = "debug_traceTransaction", hashes[name], config
    return ask(theirs, *params), ours.ask(*params)


@pytest.mark.parametrize("name", STORY)
def test_steps_are_those_of_anvil(sides: Sides, name: str) -> None:
    theirs, ours = both(sides, name, enableMemory=True, enableReturnData=True)
    steps = [_step(step) for step in theirs.pop("structLogs")]
    assert [_cost_apart(step) for step in ours.pop("structLogs")] == steps
    assert ours == theirs


def _step(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step of anvil without its empty members."""
    empty: tuple[Any, ...] = 0, [], "0x"
    shown = dict(step)
    for member, nothing in zip(("refund", "memory", "returnData"), empty, strict=True):
        if shown.get(member) == nothing:
            del shown[member]
    if shown.get("error") == "Some(OutOfGas)":
        shown["error"] = "out of gas"
    else:
        shown.pop("error", None)
    return _cost_apart(shown)


def _cost_apart(step: dict[str, Any]) -> dict[str, Any]:
    if step["op"] == "CREATE" or "error" in step:
        return {**step, "gasCost": None}
    if step["op"] == "SSTORE":
        # anvil shows the refund of this instruction from the next step on.
        return {**step, "refund": None}
    return step


@pytest.mark.parametrize("name", STORY)
def test_messages_are_those_of_anvil(sides: Sides, name: str) -> None:
    theirs, ours = both(sides, name, tracer="callTracer", tracerConfig={"withLog": True})
    # The gas of ours includes the intrinsic gas, and anvil's does not.
    assert int(theirs.pop("gas"), 16) < int(ours.pop("gas"), 16)
    assert ours == theirs


@pytest.mark.parametrize("name", STORY)
def test_changes_are_those_of_anvil(sides: Sides, name: str) -> None:
    config = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}
    theirs, ours = (_changes(side) for side in both(sides, name, **config))
    assert ours == theirs


def _changes(diff: dict[str, Any]) -> dict[str, Any]:
    """Return the changes without balances that the fees of two chains change, and without empty
    accounts."""
    return {
        side: {
            address: _account(account)
            for address, account in accounts.items()
            if set(account) - {"balance"}
        }
        for side, accounts in diff.items()
    }


def _account(account: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in account.items() if k not in ("balance", "codeHash")}


@pytest.mark.parametrize("name", ["bump", "relay", "attempt", "spawn"])
def test_access_lists_are_those_of_anvil(sides: Sides, name: str) -> None:
    theirs, ours, _ = sides
    call = {
        "from": ACCOUNT.address,
        "to": f"0x{FIRST.hex()}",
        "data": f"0x{STORY[name]['data'].hex()}",
    }
    assert ours.ask("eth_createAccessList", call) == ask(theirs, "eth_createAccessList", call)
