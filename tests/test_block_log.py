"""Tests of the log of blocks: a line for each block, and fewer lines if there are many."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain, block_log
from tests.helpers.until import until

COUNT = 500


@pytest.fixture(autouse=True)
def _enabled(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "flask_noderpc.blocks")


def total(caplog: pytest.LogCaptureFixture, name: str) -> int:
    return sum(getattr(line, name) for line in caplog.records)


def test_many_blocks_are_few_lines_that_leave_none_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = block_log.BlockLog()
    for height in range(1, COUNT + 1):
        log.add(height, height, {"txs": 2, "gas": 21_000, "milliseconds": 0.5})

    until(lambda: total(caplog, "txs") == 2 * COUNT, "the sum of the rest")

    assert len(caplog.records) < COUNT / 10
    assert [line.getMessage() for line in caplog.records[:2]] == [
        "block 1: 2 txs, 21,000 gas, 0.5 ms",
        "block 2: 2 txs, 21,000 gas, 0.5 ms",
    ]
    last: Any = caplog.records[-1]
    assert last.getMessage().startswith(f"blocks {last.from_height} to {COUNT}: ")
    assert total(caplog, "gas") == 21_000 * COUNT
    assert total(caplog, "milliseconds") == COUNT / 2


def test_a_lag_does_not_add_up(caplog: pytest.LogCaptureFixture) -> None:
    log = block_log.BlockLog()
    for height in range(1, COUNT + 1):
        log.add(height, height, {"txs": 1, "lag_seconds": float(COUNT - height)})

    until(lambda: total(caplog, "txs") == COUNT, "the sum of the rest")

    assert caplog.records[-1].getMessage().endswith(", 0.0 s behind")


@pytest.mark.parametrize("first", [{"txs": 1}, {"txs": 1, "gas": 5}])
def test_blocks_of_other_amounts_add_up(
    caplog: pytest.LogCaptureFixture, first: dict[str, float]
) -> None:
    log = block_log.BlockLog()
    for height in range(1, COUNT + 1):
        log.add(height, height, first if height % 2 else {"txs": 1, "gas": 7})

    until(lambda: total(caplog, "txs") == COUNT, "the sum of the rest")

    gas = sum(getattr(line, "gas", 0) for line in caplog.records)
    assert gas == COUNT // 2 * (7 + first.get("gas", 0))


def test_blocks_made_together_are_logged_as_others(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    chain = EmbeddedChain(tmp_path / "chain.db", produce=False, dev=True)
    try:
        chain.start()
        chain.control.mine(1100)
        until(lambda: caplog.records[-1].height == 1100, "the last line")  # type: ignore[attr-defined]
        assert total(caplog, "gas") == 0
        assert all(line.milliseconds >= 0 for line in caplog.records)  # type: ignore[attr-defined]
    finally:
        chain.close()


def test_a_chain_logs_what_it_produces(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    chain = EmbeddedChain(tmp_path / "chain.db", produce=False)
    try:
        chain.start()
        chain.mempool.submit(b"name=satoshi")
        chain.produce()
    finally:
        chain.close()
    (line,) = (line for line in caplog.records if line.name == "flask_noderpc.blocks")
    shown: Any = line
    assert (shown.event, shown.height, shown.txs) == ("block", 1, 1)
    assert shown.milliseconds > 0
