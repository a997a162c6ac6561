"""Tests that each result is about one block, even while the next one is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ethereum.protocol.signing import sender

from .contracts import COUNTER
from .evm_node import Running, tx

ME = f"0x{sender().hex()}"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path)
    made.mine()
    made.send(tx(to=COUNTER, gas=60_000, value=0))
    yield made
    made.close()


@pytest.fixture
def block_comes(node: Running, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bool], None]:
    """Return a function that makes a block before or after the next call of a given method of
    the chain."""

    def when(name: str, before: bool) -> None:
        owner: Any = node.chain.mempool if name == "pending_by_sender" else node.chain.reads
        ask = getattr(owner, name)

        def asked(*args: Any) -> Any:
            monkeypatch.setattr(owner, name, ask)
            found = None if before else ask(*args)
            node.chain.produce()
            return ask(*args) if before else found

        monkeypatch.setattr(owner, name, asked)

    return when


def test_a_call_runs_on_the_state_of_its_block(
    node: Running, block_comes: Callable[[str, bool], None]
) -> None:
    node.mine()
    node.send(tx(1, to=COUNTER, gas=60_000, value=0))
    block_comes("consensus_params", False)
    assert int(node.ask("eth_call", {"to": COUNTER}), 16) == 2
    assert int(node.ask("eth_call", {"to": COUNTER}), 16) == 3


def test_a_simulation_runs_on_the_state_of_its_block(
    node: Running, block_comes: Callable[[str, bool], None]
) -> None:
    block_comes("consensus_params", False)
    (block,) = node.ask("eth_simulateV1", {"blockStateCalls": [{"calls": [{"to": COUNTER}]}]})
    assert block["number"] == "0x2"
    assert int(block["calls"][0]["returnData"], 16) == 1


@pytest.mark.parametrize("before", [True, False])
def test_the_pending_nonce_counts_transactions_mined_meanwhile(
    node: Running, block_comes: Callable[[str, bool], None], before: bool
) -> None:
    block_comes("pending_by_sender", before)
    assert node.number("eth_getTransactionCount", ME, "pending") == 1
