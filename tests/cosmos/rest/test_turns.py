"""Tests that reading a large transaction in JSON does not block other requests."""

from __future__ import annotations

import pytest

from flask_noderpc import concurrency
from flask_noderpc.cosmos.rest.reader import read


def test_others_are_served_after_each_200_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[None] = []
    monkeypatch.setattr(concurrency, "next_turn", lambda: taken.append(None))
    send = {"@type": "/cosmos.bank.v1beta1.MsgSend", "from_address": "a", "to_address": "b"}

    read("tx.SimulateRequest", {"tx": {"body": {"messages": [send] * 15_000}}})

    assert len(taken) == 75
