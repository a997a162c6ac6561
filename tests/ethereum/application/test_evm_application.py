"""Tests of the EVM application, called as its chain calls it."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

from flask_noderpc.ethereum.application.application import EvmApplication
from flask_noderpc.ethereum.application.state import EvmRuntime, ExecutionLimits
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
