"""CometBFT 0.38 with its kvstore, on one core, with chains of the same transactions as ours."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from flask_noderpc.protocol.comet.keys import PrivateKey

from ..chains import Chain
from ..process import Server, free_port, served, until
from . import MissingError

NAME, VERSION = "CometBFT", "0.38.25"
_COMMAND = f"github.com/cometbft/cometbft/cmd/cometbft@v{VERSION}"
# Settings that raise CometBFT's bounds to ours.
_CONFIG = {
    "size": "1000000",
    "cache_size": "1000000",
    "max_request_batch_size": "100",
    "max_subscription_clients": "100000",
    "max_open_connections": "100000",
}
_BATCH = 100


def binary(cache: Path) -> Path:
    """Return the program, which Go builds if it is missing; raise :exc:`MissingError`."""
    folder = cache / VERSION
    if not (folder / "cometbft").exists():
        if shutil.which("go") is None:
            raise MissingError(f"{NAME} is built by Go, which is not installed")
        click.echo(f"building {NAME} {VERSION}, which takes some minutes the first time")
        environment = {**os.environ, "GOBIN": str(folder)}
        words = ["go", "install", _COMMAND]
        built = subprocess.run(words, env=environment, capture_output=True, text=True)
        if built.returncode != 0:
            raise MissingError(f"{NAME} could not be built: {built.stderr[-300:]}")
    return folder / "cometbft"


@contextmanager
def cometbft(program: Path, home: Path, interval: str, cores: str = "0") -> Iterator[Server]:
    """Run a node of a home with this interval between blocks, on some cores."""
    _set(home, {"timeout_commit": f'"{interval}"', **_CONFIG})
    port = free_port()
    flags: list[str | Path] = ["--proxy_app", "kvstore", "--log_level", "none", "--home", home]
    flags += ["--rpc.laddr", f"tcp://127.0.0.1:{port}"]
    flags += ["--p2p.laddr", f"tcp://127.0.0.1:{free_port()}"]
    own = {"GOMAXPROCS": str(len(cores.split(",")))}
    with served([program, "start", *flags], port, environment=own, cores=cores) as server:
        yield server


def make_home(program: Path, home: Path, validators: int = 1, max_gas: int = -1) -> None:
    """Make a home with a new chain, whose only running validator has enough power to decide
    alone."""
    subprocess.run([program, "init", "--home", home], check=True, capture_output=True)
    genesis = home / "config" / "genesis.json"
    document = json.loads(genesis.read_text())
    document["consensus_params"]["block"]["max_gas"] = str(max_gas)
    own = document["validators"][0]
    for number in range(1, validators):
        key = PrivateKey(bytes([number]) * 32).public.value
        public = {**own["pub_key"], "value": base64.b64encode(key).decode()}
        document["validators"].append({"pub_key": public, "power": "1", "name": ""})
    own["power"] = "1000000"
    genesis.write_text(json.dumps(document))


def fill(program: Path, home: Path, chain: Chain) -> None:
    """Make a home with a chain.

    The kvstore counts one gas for each transaction, so the bound of a block's gas bounds its
    transactions.
    """
    make_home(program, home, chain.validators, max_gas=chain.txs)
    # The interval must be long enough to send the transactions of one block.
    interval = "0s" if chain.txs <= _BATCH else "2s"
    txs = [tx for height in chain.heights() for tx in chain.block(height)]
    with cometbft(program, home, interval) as server, server.awake():
        for start in range(0, len(txs), _BATCH):
            part = txs[start : start + _BATCH]
            server.ask(body=json.dumps([sending(tx) for tx in part]))
        until(lambda: _waiting(server) == 0, "all transactions in blocks", every_s=0.2)
    # From now on the node makes no blocks.
    _set(home, {"create_empty_blocks": "false"})


def sending(tx: bytes) -> dict[str, Any]:
    """Return a call that sends a transaction and does not wait."""
    return call("broadcast_tx_async", tx=base64.b64encode(tx).decode())


def call(method: str, **params: Any) -> dict[str, Any]:
    """Return a JSON-RPC call."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _waiting(server: Server) -> int:
    answer = json.loads(server.ask("/num_unconfirmed_txs"))
    return int(answer["result"]["n_txs"])


def _set(home: Path, values: dict[str, str]) -> None:
    config = home / "config" / "config.toml"
    text = config.read_text()
    for key, value in values.items():
        text = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
    config.write_text(text)
