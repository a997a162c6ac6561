"""The two nodes: a real one of some version, and ours, with the same genesis and keys."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from flask_noderpc import EmbeddedChain
from flask_noderpc.backends.base.application import Application, AppState
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.validator_keys import mark_development, read_validator_key
from flask_noderpc.testing.node import app_for, serve

from ..helpers.ports import free_port
from ..helpers.process import Process, killed
from ..helpers.until import until
from .applications import KVStore034, KVStore037
from .http_client import Ask, ask

MONIKER = "twin"
HOME_FILES = ("genesis.json", "priv_validator_key.json", "node_key.json")


@dataclass(frozen=True, slots=True)
class Version:
    """A release of the real node, and the matching dialect."""

    name: str
    dialect: str
    application: Callable[[AppState], Application] = KVStore
    is_modern: bool = True
    """Whether it has the kvstore of 0.38, which refuses transactions and knows validators, and
    the category NewBlockEvents."""

    def validator_tx(self, key: bytes, power: int) -> bytes:
        """Return the transaction of the kvstore that changes a validator's power."""
        shown = base64.b64encode(key).decode()
        # Form before 0.38: abci/example/kvstore/persistent_kvstore.go.
        return (
            f"val=ed25519!{shown}!{power}" if self.is_modern else f"val:{shown}!{power}"
        ).encode()


VERSIONS = {
    version.name: version
    for version in (
        Version("0.34.35", "comet-0.34", KVStore034, is_modern=False),
        Version("0.37.18", "comet-0.37", KVStore037, is_modern=False),
        Version("0.38.25", "comet-0.38"),
        Version("0.39.4", "comet-0.39"),
        Version("0.40.0", "comet-0.40"),
        Version("1.0.1", "comet-1.0", partial(KVStore, version="1.0")),
    )
}

# Shorter timeouts than by default, and no empty blocks.
_CONFIG = {
    "moniker": f'"{MONIKER}"',
    "create_empty_blocks": "false",
    "timeout_propose": '"200ms"',
    "timeout_prevote": '"200ms"',
    "timeout_precommit": '"200ms"',
    # Version 1.0 has these two in place of the last two.
    "timeout_vote": '"200ms"',
    "timeout_commit": '"50ms"',
}


@dataclass(frozen=True, slots=True)
class Side:
    """A running node."""

    url: str

    def call(self, method: str, **params: Any) -> Any:
        """Return the result of a call; raise ``AssertionError`` if it fails."""
        reply = self._reply(method, params)
        assert "result" in reply, (method, reply)
        return reply["result"]

    def _reply(self, method: str, params: Mapping[str, Any]) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return json.loads(ask(self.url, Ask(method, "POST", body=body)).body)

    def height(self) -> int:
        """Return the height of the latest block."""
        return int(self.call("status")["sync_info"]["latest_block_height"])

    def settle(self, height: int = 1) -> int:
        """Wait until no further block is due; return the latest height."""
        latest = 0

        def is_settled() -> bool:
            nonlocal latest
            sync = self.call("status")["sync_info"]
            latest = int(sync["latest_block_height"])
            return (
                latest >= height
                and self._is_proven(sync["latest_app_hash"])
                and self._has_next_params()
            )

        until(is_settled, f"{self.url} settles at {height}")
        return latest

    def _has_next_params(self) -> bool:
        # CometBFT's state/execution.go, ApplyBlock, saves a block before the state after it.
        return "result" in self._reply("consensus_params", {})

    def _is_proven(self, app_hash: str) -> bool:
        info = self.call("abci_info")["response"]
        known = base64.b64decode(info.get("last_block_app_hash", "")).hex().upper()
        return known == app_hash


def make_home(binary: Path, folder: Path) -> None:
    """Write genesis, keys and settings of a new chain."""
    subprocess.run([binary, "init", "--home", folder], check=True, capture_output=True)
    configure(folder, _CONFIG)


def configure(home: Path, values: Mapping[str, str] = _CONFIG) -> None:
    """Set values in a home's config.toml."""
    config = home / "config" / "config.toml"
    text = config.read_text()
    for key, value in values.items():
        text = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
    config.write_text(text)


@contextmanager
def real(binary: Path, home: Path) -> Iterator[Side]:
    """Run a real node with the kvstore inside."""
    with RealNode(binary, home, application="kvstore") as node:
        yield node.side


class RealNode:
    """A home, its addresses, and its process while it runs."""

    def __init__(
        self, binary: Path, home: Path, *flags: str, application: str = "persistent_kvstore"
    ) -> None:
        port, self.peer_port = free_port(), free_port()
        self.binary, self.home, self.flags = binary, home, flags
        self._application = application
        self.side = Side(f"http://127.0.0.1:{port}")
        self._running = ExitStack()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process; return once it responds."""
        command = [
            str(self.binary), "start", "--home", str(self.home),
            "--proxy_app", self._application,
            "--rpc.laddr", self.side.url.replace("http", "tcp"),
            "--p2p.laddr", f"tcp://127.0.0.1:{self.peer_port}", *self.flags,
        ]  # fmt: skip
        self._running.enter_context(running(command, self.home, self.side, "health"))

    def stop(self) -> None:
        """Kill the process."""
        self._running.close()


@contextmanager
def inspected(binary: Path, home: Path) -> Iterator[Side]:
    """Run CometBFT's RPC over the stores of a home, without a node."""
    port = free_port()
    command = [str(binary), "inspect", "--home", str(home)]
    command += ["--rpc.laddr", f"tcp://127.0.0.1:{port}"]
    with running(command, home, Side(f"http://127.0.0.1:{port}"), "blockchain") as side:
        yield side


@contextmanager
def running(command: list[str], home: Path, side: Side, method: str) -> Iterator[Side]:
    """Run a command; yield its node once it responds to this method."""
    with killed(Process(command, home / "log")):
        _wait_until_up(side, method)
        yield side


def _wait_until_up(side: Side, method: str = "health") -> None:
    def is_up() -> bool:
        with suppress(OSError, AssertionError):
            side.call(method)
            return True
        return False

    until(is_up, f"an answer of {side.url}")


@contextmanager
def ours(home: Path, folder: Path, version: Version) -> Iterator[Side]:
    """Run our node with the genesis and keys of a home."""
    (folder / "config").mkdir(parents=True)
    for name in HOME_FILES:
        shutil.copy(home / "config" / name, folder / "config" / name)
    # This node signs the same heights as the real node.
    key = read_validator_key((folder / "config" / "priv_validator_key.json").read_bytes())
    mark_development(folder / "config", key)
    chain = EmbeddedChain(
        folder / "noderpc.db",
        home=folder,
        application=version.application,
        moniker=MONIKER,
        schedule=BlockSchedule(interval_s=0.05),
        poll_s=0.02,
    )
    # Leave out our own method, which would be on the index page, too.
    settings = {"dialect": version.dialect, "exclude_routes": ["events"]}
    try:
        with serve(app_for(chain, **settings)) as url:
            side = Side(url)
            _wait_until_up(side)
            yield side
    finally:
        chain.close()
