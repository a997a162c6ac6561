"""A net of real validators with known keys."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from flask_noderpc.protocol.comet.keys import PrivateKey

from ..helpers.until import until
from .sides import RealNode, Side, Version, configure, make_home

_NETWORK = {"addr_book_strict": "false", "allow_duplicate_ip": "true", "pex": "false"}
# Enough power that others with a power of one can't stop the chain.
_POWER = 1000


@dataclass(slots=True)
class Net:
    """Running validators; requests go to the first one."""

    version: Version
    nodes: list[RealNode]

    @property
    def side(self) -> Side:
        """The first node."""
        return self.nodes[0].side

    def key(self, number: int) -> PrivateKey:
        """Return the key of a validator."""
        return validator_key(self.nodes[number].home)

    def send(self, *txs: bytes) -> int:
        """Send transactions at once; return the height that all nodes then have."""
        height = self.side.height()
        for tx in txs:
            self.side.call("broadcast_tx_sync", tx=base64.b64encode(tx).decode())
        until(lambda: self.side.height() > height, f"block {height + 1}")
        return self.settle()

    def settle(self) -> int:
        """Wait until no transaction is pending; return the height of all nodes."""

        def is_empty() -> bool:
            return int(self.side.call("num_unconfirmed_txs")["n_txs"]) == 0

        until(is_empty, "an empty mempool")
        height = self.side.settle()
        until(lambda: all(node.side.height() >= height for node in self.nodes), str(height))
        return height


def validator_key(home: Path) -> PrivateKey:
    """Return the private key of a home's validator."""
    stored = json.loads((home / "config" / "priv_validator_key.json").read_text())
    return PrivateKey(base64.b64decode(stored["priv_key"]["value"])[:32])


@contextmanager
def real_net(binary: Path, version: Version, folder: Path, count: int = 4) -> Iterator[Net]:
    """Run a net of real validators."""
    homes = [folder / f"node{number}" for number in range(count)]
    if count == 1:
        # Clients expect a chain ID of the form test-chain-… from a single node.
        make_home(binary, homes[0])
    else:
        command = [str(binary), "testnet", "--v", str(count), "--o", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
    for home in homes:
        configure(home)
        configure(home, _NETWORK)
        _prepare_genesis(home)
    nodes = [RealNode(binary, home) for home in homes]
    peers = [f"{_node_id(node.home)}@127.0.0.1:{node.peer_port}" for node in nodes]
    for at, node in enumerate(nodes):
        others = ",".join(peers[:at] + peers[at + 1 :])
        node.flags = ("--p2p.persistent_peers", others)
    with ExitStack() as stack:
        for node in nodes:
            stack.enter_context(node)
        net = Net(version, nodes)
        net.side.settle()
        until(lambda: _is_connected(net), "all peers know each other")
        # A companion begins with a block that has a later one.
        net.send(b"second=block")
        yield net


def _is_connected(net: Net) -> bool:
    wanted = len(net.nodes) - 1
    found = (node.side.call("net_info")["n_peers"] for node in net.nodes)
    return all(int(count) == wanted for count in found)


def _prepare_genesis(home: Path) -> None:
    path = home / "config" / "genesis.json"
    genesis = json.loads(path.read_text())
    for validator in genesis["validators"]:
        validator["power"] = str(_POWER)
    if "time_iota_ms" in genesis["consensus_params"]["block"]:
        # Otherwise block times run ahead of the clock: CometBFT 0.34, consensus/state.go,
        # voteTime.
        genesis["consensus_params"]["block"]["time_iota_ms"] = "1"
    path.write_text(json.dumps(genesis))


def _node_id(home: Path) -> str:
    stored = json.loads((home / "config" / "node_key.json").read_text())
    public = base64.b64decode(stored["priv_key"]["value"])[32:]
    return hashlib.sha256(public).digest()[:20].hex()
