"""Tests that a copy of a live CometBFT validator's home signs nothing, and that a companion
reads no key."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend

from ..differential.sides import VERSIONS, RealNode, Side, make_home, running
from ..helpers.ports import free_port
from ..helpers.process import Process, killed
from ..helpers.until import until
from ..server.node_process import COMMAND
from .test_companion import MODERN, binary_of

REFUSED = 78
STORES = ("blockstore.db", "state.db", "cs.wal")


@dataclass(frozen=True, slots=True)
class Live:
    """A running validator, and a copy of its home."""

    side: Side
    copy: Path
    dialect: str


@pytest.fixture(params=MODERN)
def live(request: pytest.FixtureRequest, go_programs: Path, tmp_path: Path) -> Iterator[Live]:
    binary, home = binary_of(request.param, go_programs), tmp_path / "live"
    make_home(binary, home)
    with RealNode(binary, home, application="kvstore") as node:
        for number in range(4):
            tx = base64.b64encode(b"k%d=v" % number).decode()
            node.side.call("broadcast_tx_commit", tx=tx)
        shutil.copytree(home, tmp_path / "copy")
        yield Live(node.side, tmp_path / "copy", VERSIONS[request.param].dialect)


def start(home: Path, *flags: str) -> list[str]:
    address = f"tcp://127.0.0.1:{free_port()}"
    return [*COMMAND, "--home", str(home), "--rpc.laddr", address, *flags]


def refusal(home: Path) -> str:
    """Start a node in a home; return the error with which it ended before it signed."""
    signed = _state(home)
    ended = subprocess.run(start(home), capture_output=True, text=True, timeout=120)
    assert ended.returncode == REFUSED, ended.stderr
    assert "Traceback" not in ended.stderr
    assert _state(home) == signed
    store = home / "data" / "noderpc.db"
    if store.exists():
        backend = SQLiteBackend(store)
        assert backend.reads.latest_height() == 0
        backend.close()
    return ended.stderr


def _state(home: Path) -> str | None:
    path = home / "data" / "priv_validator_state.json"
    return path.read_text() if path.exists() else None


def without_stores(home: Path) -> None:
    for name in STORES:
        shutil.rmtree(home / "data" / name)


def test_a_copied_home_is_refused(live: Live) -> None:
    text = refusal(live.copy)

    assert "blockstore.db: this is the home of a CometBFT node" in text
    assert "--upstream" in text


def test_a_copy_without_the_block_store_is_refused_by_its_state(live: Live) -> None:
    without_stores(live.copy)
    height = json.loads(_state(live.copy) or "")["height"]

    text = refusal(live.copy)

    assert int(height) >= 4
    assert f"has signed height {height}" in text


def test_a_copy_of_its_configuration_alone_is_refused(live: Live) -> None:
    shutil.rmtree(live.copy / "data")

    assert "priv_validator_state.json is missing" in refusal(live.copy)


def test_a_companion_in_a_copied_home_reads_no_key(live: Live) -> None:
    (live.copy / "config" / "priv_validator_key.json").write_text("not a key")
    state = _state(live.copy)
    words = start(live.copy, "--upstream", live.side.url)
    side = Side(words[words.index("--rpc.laddr") + 1].replace("tcp", "http"))
    height = live.side.height()

    with running(words, live.copy, side, "health"):
        until(lambda: side.height() >= height, "the companion follows")
        shown = side.call("commit", height=str(height))["signed_header"]["commit"]

    assert shown == live.side.call("commit", height=str(height))["signed_header"]["commit"]
    assert _state(live.copy) == state


def test_a_state_of_this_node_stops_cometbft(live: Live, go_programs: Path) -> None:
    """CometBFT reads the state that we write, and refuses a height below it."""
    own = live.copy.parent / "own"
    shutil.copytree(live.copy / "config", own / "config")
    (own / "data").mkdir()
    (own / "data" / "priv_validator_state.json").write_text(
        '{\n  "height": "0",\n  "round": 0,\n  "step": 0\n}'
    )
    words = start(own, "--dialect", live.dialect, "--block-interval", "0.05", "--empty-blocks")
    side = Side(words[words.index("--rpc.laddr") + 1].replace("tcp", "http"))
    with running(words, own, side, "health"):
        until(lambda: side.height() >= 3, "three blocks")
    state = _state(own)
    for path in (own / "data").glob("noderpc.db*"):
        path.unlink()

    binary = go_programs / "cometbft"
    command = [str(binary), "start", "--home", str(own), "--proxy_app", "kvstore"]
    command += ["--rpc.laddr", f"tcp://127.0.0.1:{free_port()}"]
    command += ["--p2p.laddr", f"tcp://127.0.0.1:{free_port()}"]
    log = own / "comet.log"
    with killed(Process(command, log)):
        until(lambda: "height regression" in log.read_text(), "CometBFT refuses to sign")
    assert _state(own) == state
