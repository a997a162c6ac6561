"""Tests of our engine compared with Ethereum's executable specification, to the unit of gas."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("ethereum.forks.osaka", reason="tox -e oracle has it")

from ethereum.exceptions import EthereumException
from ethereum_rlp.exceptions import RLPException

from flask_noderpc.ethereum.domain.execution import NO_STORAGE, Outcome
from flask_noderpc.ethereum.domain.forks import FORKS, Fork
from flask_noderpc.ethereum.engine.base import EvmEngine
from flask_noderpc.ethereum.engine.evm import Evm
from flask_noderpc.ethereum.engine.jobs import (
    ExecuteBlock,
    ExecutedBlock,
    Patch,
    RefusedTransaction,
)
from flask_noderpc.protocol.secp256k1eth import keccak
from tests.faults.processes import is_long

from .eels import Eels
from .scenario import Scenario

SEEDS = range(20) if is_long() else range(2)
BLOCKS, TXS = 50, 10


class NodeStore(dict[bytes, bytes]):
    """Nodes that an engine wrote, and made-up hashes of blocks."""

    def record(self, digest: bytes) -> bytes | None:
        return self.get(digest)

    def block_hash(self, height: int) -> bytes | None:
        return keccak(height.to_bytes(8))


def kind(outcome: Outcome) -> str:
    """Return success, reverted or failed; error texts differ between engines."""
    return "reverted" if outcome.reverted else "failed" if outcome.error else "success"


def told(executed: ExecutedBlock, fork: Fork) -> list[object]:
    """Return everything but the texts of errors, and the output where the specification has
    none."""
    return [
        (
            kind(found[1]),
            found[1].gas_used,
            found[1].max_used_gas,
            found[1].output.hex() if fork.max_tx_type >= 4 else "",
            found[1].logs,
            found[1].created,
        )
        if isinstance(found, tuple)
        else found
        for found in executed.outcomes
    ]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FORKS)
def test_random_transactions_do_the_same(
    name: str, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    fork, records = FORKS[name], NodeStore()
    scenario = Scenario(seed, fork)
    ours, eels = Evm(records), Eels(fork, records.block_hash)
    spent = {"ours": 0.0, "eels": 0.0}
    kinds: dict[str, int] = {}

    def timed(engine: EvmEngine, name: str, job: ExecuteBlock) -> ExecutedBlock:
        began = time.perf_counter()
        done = job(engine)
        spent[name] += time.perf_counter() - began
        return done

    genesis = Patch(NO_STORAGE, scenario.genesis())
    change = genesis(ours)
    assert genesis(eels).root == change.root
    for number in range(1, BLOCKS + 1):
        records |= change.written
        txs = scenario.block(ours.world(change.root), TXS)
        job = ExecuteBlock(change.root, scenario.environment(number), txs)
        mine, expected = timed(ours, "ours", job), timed(eels, "eels", job)
        assert told(mine, fork) == told(expected, fork), f"block {number}"
        assert mine.change.root == expected.change.root, f"block {number}"
        change = mine.change
        for found in mine.outcomes:
            told_kind = kind(found[1]) if isinstance(found, tuple) else "refused"
            kinds[told_kind] = kinds.get(told_kind, 0) + 1

    assert min(kinds["success"], kinds["failed"], kinds["reverted"]) > 1
    with capsys.disabled():
        print(f" [{kinds}, { ({k: round(v, 1) for k, v in spent.items()}) } s]", end=" ")


def refusal(eels: Eels, job: ExecuteBlock, raw: bytes) -> str:
    """Return the error with which EELS refuses a transaction; empty if it runs."""
    world = eels.world(job.root)
    try:
        world.run_signed(job.environment, raw)
    except (EthereumException, RLPException) as error:
        return type(error).__name__
    return ""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FORKS)
def test_the_same_transactions_may_run(name: str, seed: int) -> None:
    fork, records = FORKS[name], NodeStore()
    scenario = Scenario(seed, fork)
    ours, eels = Evm(records), Eels(fork, records.block_hash)
    genesis = Patch(NO_STORAGE, scenario.genesis())
    change = genesis(ours)
    assert genesis(eels).root == change.root
    records |= change.written
    world, seen = ours.world(change.root), set()

    for number in range(400):
        raw = scenario.odd(world)
        job = ExecuteBlock(change.root, scenario.environment(1), (raw,))
        (mine,) = job(ours).outcomes
        expected = refusal(eels, job, raw)
        reason = mine.reason if isinstance(mine, RefusedTransaction) else ""
        assert bool(reason) == bool(expected), (
            f"{number}: {reason!r}, {expected!r}: 0x{raw.hex()[:300]}"
        )
        seen.add(expected)

    assert len(seen) > 6, seen
