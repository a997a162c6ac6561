"""Tests of starting, stopping and sharing a chain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from flask_noderpc.backends.base.application import InitChain
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.domain.genesis import BlockParams, Genesis
from flask_noderpc.errors import ConfigurationError, LeaseLost, StoreError, TxInCache
from tests.helpers.until import PATIENCE

from .conftest import Open
from .fixtures import Recorder, key, write_home


def test_nothing_is_opened_before_the_start(unstarted: Open, tmp_path: Path) -> None:
    unstarted(produce=True, schedule=BlockSchedule(0.01, empty_blocks=True))

    assert list(tmp_path.iterdir()) == []


def test_a_start_makes_the_folder_the_home_and_the_store(tmp_path: Path) -> None:
    chain = EmbeddedChain(tmp_path / "deep" / "down" / "chain.db", produce=False)
    try:
        chain.start()

        assert (tmp_path / "deep" / "down" / "config" / "genesis.json").exists()
        assert chain.store.has_chain()
    finally:
        chain.close()


def test_a_second_start_changes_nothing(chain: EmbeddedChain) -> None:
    node = chain.network.info

    chain.start()

    assert chain.network.info is node


def test_threads_that_start_one_chain_at_once_start_it_once(
    unstarted: Open,
) -> None:
    app = Recorder()
    chain = unstarted(application=app)
    together = threading.Barrier(6)

    def start() -> None:
        together.wait(PATIENCE)
        chain.start()

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert app.inits == 1
    assert chain.produce() == 1


def test_the_node_introduces_itself(open_chain: Open, tmp_path: Path) -> None:
    chain = open_chain(moniker="me", rpc_address="tcp://1.2.3.4:5", chain_id="known")

    node = chain.network.node_info()

    node_key = json.loads((tmp_path / "config" / "node_key.json").read_text())
    assert len(node.id) == 20
    assert node_key["priv_key"]["type"] == "tendermint/PrivKeyEd25519"
    assert (node.moniker, node.network) == ("me", "known")
    assert node.other.rpc_address == "tcp://1.2.3.4:5"
    assert node.protocol_version.app == 1
    assert chain.network.validator_key() == chain.reads.genesis().validators[0].pub_key


def test_state_and_mempool_survive_a_restart(open_chain: Open) -> None:
    chain = open_chain()
    chain.mempool.submit(b"name=satoshi")
    chain.produce()
    chain.mempool.submit(b"later=one")
    chain.close()

    again = open_chain()

    assert again.reads.latest_height() == 1
    assert again.application.query("", b"name", 0, False).value == b"satoshi"
    assert again.mempool.pending(10).txs == (b"later=one",)
    with pytest.raises(TxInCache):
        again.mempool.submit(b"name=satoshi")
    assert again.produce() == 2


def test_a_closed_chain_opens_again_when_it_is_used(chain: EmbeddedChain) -> None:
    chain.produce()
    chain.close()

    assert chain.produce() == 2
    assert chain.reads.latest_height() == 2


def test_closing_twice_is_closing_once(chain: EmbeddedChain) -> None:
    chain.close()
    chain.close()


def test_a_home_may_lie_elsewhere(open_chain: Open, tmp_path: Path) -> None:
    write_home(tmp_path / "home", {1: 10}, [1])

    chain = open_chain(home=tmp_path / "home")

    assert chain.reads.chain_id() == "made-by-hand"
    assert chain.network.validator_key() == key(1).public
    assert not (tmp_path / "config").exists()


def test_a_home_with_another_initial_height_is_continued(
    open_chain: Open, tmp_path: Path
) -> None:
    write_home(tmp_path, {1: 10}, [1])
    document = tmp_path / "config" / "genesis.json"
    document.write_text(
        document.read_text().replace('"initial_height": "1"', '"initial_height": "50"')
    )
    chain = open_chain()

    heights = [chain.produce(), chain.produce()]

    assert heights == [50, 51]
    assert (chain.reads.base_height(), chain.reads.latest_height()) == (50, 51)
    assert chain.store.verify() == 2


def test_another_chain_id_than_the_store_s_is_refused(open_chain: Open) -> None:
    open_chain(chain_id="one").close()

    with pytest.raises(
        ConfigurationError, match=r"NODERPC_CHAIN_ID: expected 'one', .*, got 'two'"
    ):
        open_chain(chain_id="two")


@pytest.mark.sqlite
def test_another_chain_id_than_the_home_s_is_refused(open_chain: Open, tmp_path: Path) -> None:
    open_chain(chain_id="one").close()
    for path in tmp_path.glob("*.db*"):
        path.unlink()

    with pytest.raises(
        ConfigurationError, match=r"NODERPC_CHAIN_ID: expected 'one'.*got 'two'"
    ):
        open_chain(chain_id="two")


@pytest.mark.sqlite
def test_a_database_without_its_home_is_refused(open_chain: Open, tmp_path: Path) -> None:
    open_chain().close()

    with pytest.raises(ConfigurationError, match="NODERPC_HOME") as refusal:
        open_chain(home=tmp_path / "empty", produce=True)

    assert "chain.db, got no keys" in str(refusal.value)
    assert not (tmp_path / "empty").exists()


def test_the_home_of_another_chain_is_refused(open_chain: Open, tmp_path: Path) -> None:
    open_chain().close()
    write_home(tmp_path / "other", {1: 10}, [1])

    with pytest.raises(StoreError, match=r"has chain 'test-chain-.*another genesis"):
        open_chain(home=tmp_path / "other")


def test_a_chain_keeps_the_parameters_that_it_began_with(
    open_chain: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_home(tmp_path, {1: 10}, [1])
    document = tmp_path / "config" / "genesis.json"
    raw = json.loads(document.read_text())
    del raw["consensus_params"], raw["genesis_time"]
    document.write_text(json.dumps(raw))
    first = open_chain(dialect="comet-0.38")
    first.produce()
    begun = first.reads.genesis()
    first.close()

    again = open_chain(dialect="comet-1.0")

    assert again.reads.genesis() == begun
    assert begun.consensus_params.block == BlockParams()
    assert "the chain keeps its own" in caplog.text
    assert again.produce() == 2


def test_a_start_that_failed_can_be_tried_again(unstarted: Open, tmp_path: Path) -> None:
    write_home(tmp_path, {1: 10}, [1])
    document = tmp_path / "config" / "genesis.json"
    good = document.read_text()
    document.write_text("{")
    chain = unstarted()
    with pytest.raises(ConfigurationError):
        chain.start()
    document.write_text(good)

    chain.start()

    assert chain.produce() == 1


def test_only_one_of_two_produces(open_chain: Open) -> None:
    first, second = open_chain(), open_chain()
    first.produce()

    with pytest.raises(LeaseLost, match=r"another process .*produces blocks"):
        second.produce()
    first.close()

    assert second.produce() == 2


def test_a_store_that_is_only_read_serves_and_makes_nothing(
    open_chain: Open, tmp_path: Path
) -> None:
    writer = open_chain()
    writer.mempool.submit(b"name=satoshi")
    writer.produce()
    before = sorted(path.name for path in (tmp_path / "config").iterdir())

    reader = EmbeddedChain(
        f"file:{tmp_path}/chain.db?mode=ro", schedule=BlockSchedule(0.01, True)
    )
    try:
        reader.start()

        assert reader.application.query("", b"name", 0, False).value == b"satoshi"
        assert reader.store.verify() == 1
        with pytest.raises(StoreError, match="read-only"):
            reader.mempool.submit(b"a=b")
        writer.close()
        with pytest.raises(StoreError, match="read-only"):
            reader.produce()
        assert reader.reads.wait_for_height(1, 0.1) == 1
    finally:
        reader.close()
    assert sorted(path.name for path in (tmp_path / "config").iterdir()) == before


@pytest.mark.sqlite
def test_processes_that_start_one_chain_at_once_share_it(tmp_path: Path) -> None:
    program = """
import sys
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.chain.block_scheduler import BlockSchedule
chain = EmbeddedChain(sys.argv[1], schedule=BlockSchedule(0.02, True, lease_s=1.0))
sys.stdin.readline()
chain.start()
chain.mempool.submit(b"from=" + sys.argv[2].encode())
chain.reads.wait_for_height(3, 120)
print(chain.reads.chain_id(), flush=True)
sys.stdin.readline()
chain.close()
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "chain.db"), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        for number in range(4)
    ]
    try:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        names = {process.stdout.readline() for process in processes if process.stdout}
    finally:
        for process in processes:
            process.communicate("end\n", timeout=PATIENCE)

    chain = EmbeddedChain(tmp_path / "chain.db", produce=False)
    try:
        chain.start()
        txs = {
            tx
            for height in range(1, chain.reads.latest_height() + 1)
            for tx in chain.reads.block(height)[1].txs
        } | set(chain.mempool.pending(10).txs)
        assert len(names) == 1
        assert [process.returncode for process in processes] == [0] * 4
        assert txs == {b"from=%d" % number for number in range(4)}
        assert chain.store.verify() >= 4
    finally:
        chain.close()


def test_processes_that_begin_a_chain_at_once_agree_on_its_time(
    unstarted: Open, tmp_path: Path
) -> None:
    write_home(tmp_path, {1: 10}, [1])
    document = tmp_path / "config" / "genesis.json"
    raw = json.loads(document.read_text())
    del raw["genesis_time"]
    document.write_text(json.dumps(raw))
    first = unstarted(clock=ManualClock(1))

    class Late(KVStore):
        def init_chain(self, genesis: Genesis) -> InitChain:
            # The other process stores the genesis after this one has read the document.
            first.start()
            return super().init_chain(genesis)

    second = unstarted(clock=ManualClock(2), application=Late)
    second.start()

    assert second.reads.genesis() == first.reads.genesis()
    assert second.produce() == 1
