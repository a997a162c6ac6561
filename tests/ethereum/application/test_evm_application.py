"""Tests of the EVM application, called as its chain calls it."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

from flask_noderpc.ethereum.application.application import EvmApplication
from flask_noderpc.ethereum.application.state import EvmHead, EvmRuntime, ExecutionLimits
from flask_noderpc.ethereum.domain.execution import Environment
from flask_noderpc.ethereum.protocol.transactions import decode, encode_unsigned
from flask_noderpc.testing.chains import DictState
from tests.ethereum.protocol.signing import CHAIN_ID, sample

MEGABYTE = 1 << 20


def test_refused_transactions_are_cached_within_a_bound() -> None:
    state = DictState()
    machine = EvmRuntime(state, "nowhere.db", ExecutionLimits())
    application = EvmApplication(state, machine, CHAIN_ID)
    template = replace(decode(sample("dynamic fee")), data=bytes(MEGABYTE))
    tracemalloc.start()
    try:
        for nonce in range(60):
            raw = encode_unsigned(bytes(19) + b"\1", replace(template, nonce=nonce))
            assert "v, r, s" in application.check_tx(raw).log
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 40 * MEGABYTE


class Contended(EvmApplication):
    """An application whose cached environment another thread replaces at once."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_next" and value is not None:
            latest, environment = value
            value = replace(latest, height=98), replace(environment, number=99)
        super().__setattr__(name, value)


def test_a_thread_with_another_latest_block_does_not_change_the_environment() -> None:
    state = DictState()
    machine = EvmRuntime(state, "nowhere.db", ExecutionLimits())
    application = Contended(state, machine, CHAIN_ID)
    latest = EvmHead(height=4, root=bytes(32), base_fee=7, gas_used=0, gas_limit=30_000_000)
    for _ in range(2):
        found: Environment = application._next_environment(latest)
        assert found.number == 5
