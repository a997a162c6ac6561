"""Tests of CosmJS's four clients, and StargateClient, with our node in each dialect."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from flask_noderpc import EmbeddedChain, NodeRPC
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.until import PATIENCE

from ..server.node_process import started

COSMJS = Path(__file__).parent / "cosmjs"
CLIENTS = {
    "comet-0.34": "Tendermint34Client",
    "comet-0.37": "Tendermint37Client",
    "comet-0.38": "Comet38Client",
    "comet-0.40": "Comet38Client",
    "comet-1.0": "Comet1Client",
}
# Number of steps of a whole run of run.js, and of idle.js.
STEPS = 38
IDLE_STEPS = 14


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    made = EmbeddedChain(tmp_path / "noderpc.db", schedule=BlockSchedule(0.1), poll_s=0.02)
    yield made
    made.close()


def run(
    node: str, url: str, client: str, script: str = "run.js"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [node, COSMJS / script, url, client], capture_output=True, text=True, timeout=PATIENCE
    )


@pytest.mark.parametrize("dialect", CLIENTS)
def test_cosmjs_does_not_notice_the_difference(
    cosmjs_node: str, chain: EmbeddedChain, dialect: str
) -> None:
    with serve(app_for(chain, dialect=dialect)) as url:
        chain.start()
        # CosmJS refuses a status without a block, even a real node's.
        assert chain.reads.wait_for_height(0, PATIENCE)
        ended = run(cosmjs_node, url, CLIENTS[dialect])

    assert ended.returncode == 0, ended.stderr
    steps = [json.loads(line)["step"] for line in ended.stdout.splitlines()]
    assert (steps[0], steps[-1], len(steps)) == ("connectComet", "stargate getTx", STEPS)


def test_cosmjs_speaks_to_a_mount_beside_that_of_the_document(
    cosmjs_node: str, chain: EmbeddedChain
) -> None:
    app = app_for(chain)
    NodeRPC(app, backend=chain, name="comet", url_prefix="/comet", dialect="comet-0.38")
    with serve(app) as url:
        chain.start()
        assert chain.reads.wait_for_height(0, PATIENCE)
        ended = run(cosmjs_node, f"{url}/comet", "Comet38Client")

    assert ended.returncode == 0, ended.stderr


def test_cosmjs_notices_another_dialect(cosmjs_node: str, chain: EmbeddedChain) -> None:
    with serve(app_for(chain, dialect="comet-0.34")) as url:
        chain.start()
        assert chain.reads.wait_for_height(0, PATIENCE)
        ended = run(cosmjs_node, url, "Comet38Client")

    assert ended.returncode == 1
    assert "connectComet" in ended.stderr


@pytest.mark.parametrize("dialect", CLIENTS)
def test_cosmjs_tests_pass_against_a_plain_node(
    cosmjs_node: str, tmp_path: Path, dialect: str
) -> None:
    # Before anything is sent, only a node that makes blocks by itself has any.
    expected = {"idle.js": IDLE_STEPS, "run.js": STEPS}
    with started(tmp_path, "--dialect", dialect, "--block-interval", "0.2") as plain:
        plain.until_second_block()
        for script, steps in expected.items():
            ended = run(cosmjs_node, plain.url(), CLIENTS[dialect], script)

            assert ended.returncode == 0, ended.stderr
            assert len(ended.stdout.splitlines()) == steps
