"""Tests that a chain which retains its latest blocks prunes a few after each new one."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from flask_noderpc.chain.applications.merkle_kvstore import MerkleKVStore
from flask_noderpc.errors import ConfigurationError, NotSupported, StoreError
from flask_noderpc.ethereum.application.application import EvmApplication
from flask_noderpc.ethereum.application.state import EvmRuntime, ExecutionLimits
from flask_noderpc.testing.node import app_for

from .conftest import Open
from .fixtures import Recorder


def test_retain_blocks_leaves_that_many_latest_blocks(open_chain: Open) -> None:
    chain = open_chain(retain_blocks=5)

    for height in range(1, 13):
        chain.mempool.submit(b"k%d=v" % height)
        assert chain.produce() == height
        assert chain.reads.base_height() == max(1, height - 4)

    assert chain.store.verify() == 5
    status = app_for(chain, dialect="comet-0.38").test_client().get("/status").get_json()
    assert status["result"]["sync_info"]["earliest_block_height"] == "8"


def test_all_blocks_are_retained_by_default(open_chain: Open) -> None:
    chain = open_chain()
    for _ in range(30):
        chain.produce()
    assert chain.reads.base_height() == 1


def test_a_long_chain_becomes_short_little_by_little(open_chain: Open) -> None:
    chain = open_chain()
    for _ in range(100):
        chain.produce()
    chain.close()

    again = open_chain(retain_blocks=10)
    lowest = []
    while again.reads.base_height() < again.reads.latest_height() - 9:
        again.produce()
        lowest.append(again.reads.base_height())

    assert len(lowest) > 2
    steps = [after - before for before, after in zip([1, *lowest], lowest, strict=False)]
    assert max(steps) <= 30
    assert again.store.verify() == 10


@pytest.mark.parametrize("application", [None, MerkleKVStore])
def test_a_pruned_chain_starts_again_and_goes_on(
    open_chain: Open, application: type[MerkleKVStore] | None
) -> None:
    options = {"application": application} if application else {}
    chain = open_chain(retain_blocks=3, **options)
    for height in range(10):
        chain.mempool.submit(b"k%d=v" % height)
        chain.produce()
    chain.close()

    again = open_chain(retain_blocks=3, **options)

    assert again.application.query("", b"k1", 0, False).value == b"v"
    again.mempool.submit(b"next=1")
    assert again.produce() == 11
    assert again.reads.base_height() == 9
    assert again.store.verify() == 3


class Needy(Recorder):
    """An application that names the oldest block it may still need; 0 means that it names
    none."""

    behind = 0

    def commit(self, height: int) -> int | None:  # type: ignore[override]
        super().commit(height)
        return max(0, height - self.behind) if self.behind else 0


@pytest.mark.parametrize(
    ("behind", "retain", "base"),
    [(0, None, 1), (4, None, 16), (4, 8, 13), (7, 4, 13), (0, 4, 17)],
)
def test_pruning_stops_at_what_application_and_operator_need(
    open_chain: Open, behind: int, retain: int | None, base: int
) -> None:
    application = Needy()
    application.behind = behind
    chain = open_chain(application=application, retain_blocks=retain)
    for _ in range(20):
        chain.produce()
    assert chain.reads.base_height() == base


def test_an_application_behind_the_pruned_blocks_gets_a_clear_error(
    open_chain: Open, unstarted: Open, tmp_path: Path
) -> None:
    chain = open_chain(application=Recorder(), retain_blocks=3)
    for _ in range(10):
        chain.produce()
    chain.close()

    late = unstarted(application=Recorder(kept=[[], []]))

    text = r"app block height \(2\) is too far below block store base \(8\)"
    with pytest.raises(StoreError, match=text):
        late.start()
    # An application that lacks stored blocks executes them again.
    assert open_chain(application=Recorder(kept=[[]] * 7)).produce() == 11


def test_a_block_stands_where_no_other_can_be_removed(
    open_chain: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chain = open_chain(retain_blocks=1)
    chain.produce()

    def fail(base: int) -> int:
        raise StoreError("no room")

    monkeypatch.setattr(chain.store, "prune_some", fail)
    with caplog.at_level(logging.ERROR):
        assert chain.produce() == 2
    assert "old blocks could not be pruned" in caplog.text
    assert chain.reads.base_height() == 1


def test_ethereum_s_code_needs_the_hashes_of_the_last_blocks(
    unstarted: Open, tmp_path: Path
) -> None:
    def application(state: object) -> EvmApplication:
        machine = EvmRuntime(state, str(tmp_path / "chain.db"), ExecutionLimits())  # type: ignore[arg-type]
        return EvmApplication(state, machine, 9000)  # type: ignore[arg-type]

    with pytest.raises(
        ConfigurationError, match="NODERPC_RETAIN_BLOCKS: expected at least 257"
    ):
        unstarted(application=application, retain_blocks=256)
    unstarted(application=application, retain_blocks=257)


def test_a_chain_cannot_revert_to_a_pruned_block(open_chain: Open) -> None:
    chain = open_chain(application=Recorder(), dev=True, retain_blocks=3)
    control = chain.control
    control.mine(2)
    old = control.snapshot()
    control.mine(8)

    assert control.revert(old) is False
    with pytest.raises(NotSupported):
        control.reset()
    assert (chain.reads.base_height(), chain.reads.latest_height()) == (8, 10)
