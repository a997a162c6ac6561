"""Tests that a call with many elements does not block other requests."""

from __future__ import annotations

import pytest

from flask_noderpc import concurrency
from flask_noderpc.errors import ParseError
from flask_noderpc.ethereum.rpc.codec.call_objects import CallObject, StateOverride
from flask_noderpc.ethereum.rpc.dialect import GethEnvelope
from flask_noderpc.ethereum.rpc.execution.simulate import SimulationPayload

ADDRESSES = [f"0x{number:040x}" for number in range(2_000)]
SLOTS = {f"0x{number:064x}": f"0x{number:064x}" for number in range(10_000)}
FEW = dict(list(SLOTS.items())[:5])
AUTHORIZATION = {"chainId": "0x1", "address": ADDRESSES[1], "nonce": "0x0", "yParity": "0x0"}
AUTHORIZATION |= {"r": "0x1", "s": "0x1"}
CODE = "0x" + "00" * 1_000


@pytest.mark.parametrize(
    ("field", "value", "turns"),
    [
        (StateOverride(), {each: {"stateDiff": FEW} for each in ADDRESSES}, 10),
        (StateOverride(), {each: {"code": CODE} for each in ADDRESSES}, 10),
        (StateOverride(), {ADDRESSES[0]: {"state": SLOTS}}, 50),
        (
            SimulationPayload(),
            {"blockStateCalls": [{"stateOverrides": {ADDRESSES[0]: {"state": SLOTS}}}] * 3},
            150,
        ),
        (SimulationPayload(), {"blockStateCalls": [{"calls": [{}] * 5_000}] * 2}, 50),
        (CallObject(), {"to": ADDRESSES[0], "authorizationList": [AUTHORIZATION] * 2_000}, 10),
        (CallObject(), {"accessList": [{"address": each} for each in ADDRESSES]}, 10),
    ],
)
def test_others_are_served_after_each_200_elements(
    monkeypatch: pytest.MonkeyPatch,
    field: StateOverride | SimulationPayload | CallObject,
    value: object,
    turns: int,
) -> None:
    taken: list[None] = []
    monkeypatch.setattr(concurrency, "next_turn", lambda: taken.append(None))

    field.from_json(value)

    assert len(taken) == turns


@pytest.mark.parametrize(
    "body",
    [
        b'["' + b"\\n" * 2_400_000,
        b"[" * 5_000_000,
        b'["' + b"a" * (1 << 20) + b'"] []',
        b"[" + b'"" ' * 60_000,
        b"[" + b"[]," * 30_000 + b"0] []",
    ],
    ids=["a string", "brackets", "a first value above 1 MB", "strings", "many lists"],
)
def test_a_large_body_that_is_no_single_value_is_refused(body: bytes) -> None:
    with pytest.raises(ParseError):
        GethEnvelope().parse(body, 1_000)


def test_of_several_values_the_first_counts() -> None:
    calls = GethEnvelope().parse(b'{"method":"a","id":1}' * 2, 1_000)

    assert not calls.is_batch
