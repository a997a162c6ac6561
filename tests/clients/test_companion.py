"""Tests of clients that use a companion of a real node.

They use all versions if ``NODERPC_REAL_NODES`` is the folder of ``.ci/real_nodes``, otherwise
0.38.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.differential import conformity, network, restarts, upgrade
from tests.differential.companion import beside
from tests.differential.history import History
from tests.differential.net import Net, real_net
from tests.differential.sides import VERSIONS, Side, Version

from .light import LightClient, Refused, Trust, light_client
from .test_cosmjs import CLIENTS, STEPS, run
from .test_go_client import LAST_STEPS, run_go_client

_FOLDER = os.environ.get("NODERPC_REAL_NODES", "")
# The fixture builds this version.
_BUILT = "0.38.25"
_NAMES = [*VERSIONS] if _FOLDER else [_BUILT]
# Versions that run the kvstore for which the Go client's steps are written.
MODERN = [name for name in _NAMES if VERSIONS[name].is_modern]


@dataclass(frozen=True, slots=True)
class Beside:
    """A net of one real node, and the folder of its companions."""

    net: Net
    binary: Path
    folder: Path

    @property
    def version(self) -> Version:
        """The version of CometBFT that the net runs."""
        return self.net.version

    @contextmanager
    def companion(self, dialect: str = "") -> Iterator[Side]:
        """Run a companion, by default in the dialect of its node."""
        folder = self.folder / (dialect or "own")
        with beside(self.net.side, self.version, folder, dialect=dialect) as side:
            height = self.net.settle()
            side.settle(height)
            yield side


def binary_of(name: str, go_programs: Path) -> Path:
    """Return the path of a version's binary."""
    if name == _BUILT:
        return go_programs / "cometbft"
    return Path(_FOLDER) / name / "cometbft"


@contextmanager
def single(name: str, go_programs: Path, folder: Path) -> Iterator[Beside]:
    """Run a real node whose validators have changed."""
    binary = binary_of(name, go_programs)
    with real_net(binary, VERSIONS[name], folder / "net", count=1) as net:
        History(net).small()
        yield Beside(net, binary, folder)


@pytest.mark.parametrize("name", _NAMES)
def test_cosmjs_works_through_it(
    name: str, cosmjs_node: str, go_programs: Path, tmp_path: Path
) -> None:
    with single(name, go_programs, tmp_path) as made, made.companion() as companion:
        client = CLIENTS.get(made.version.dialect, "Comet38Client")
        ended = run(cosmjs_node, companion.url, client)

    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.splitlines()) == STEPS


@pytest.mark.parametrize("name", MODERN)
def test_the_client_of_cometbft_works_through_it(
    name: str, go_programs: Path, tmp_path: Path
) -> None:
    with (
        single(name, go_programs, tmp_path) as made,
        # The Go client is version 0.38, which can read 0.39 and 0.40, too.
        made.companion("comet-0.38" if name.startswith("1.") else "") as companion,
    ):
        ended = run_go_client(go_programs, companion.url)

    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line for line in lines if "error" in line] == []
    assert [line["step"] for line in lines][-3:] == LAST_STEPS


@pytest.mark.parametrize("name", _NAMES)
def test_the_light_client_verifies_it(name: str, go_programs: Path, tmp_path: Path) -> None:
    with single(name, go_programs, tmp_path) as made, made.companion() as companion:
        trust = _first(companion)
        height = made.net.settle() - 1
        tx_hash = made.net.side.call("tx_search", query="tx.height>2")["txs"][0]["hash"]
        with light_client(made.binary, trust, companion.url, made.net.side.url) as client:
            commit = client.ask("commit", height=height)["signed_header"]
            block = client.ask("block", height=height)["block"]
            members = client.ask("validators", height=height)
            results = _results(client, made.version, height - 1)
            params = client.ask("consensus_params", height=height)
            tx = client.ask("tx", hash=f"0x{tx_hash}", prove="true")
        theirs = made.net.side.call("block", height=str(height))["block"]

    assert commit["header"] == block["header"] == theirs["header"]
    assert (members["block_height"], params["block_height"]) == (str(height), str(height))
    assert (results["height"], tx["hash"]) == (str(height - 1), tx_hash)


def _results(client: LightClient, version: Version, height: int) -> Any:
    """Check a block's results; light clients of old versions refuse those of every node."""
    if version.is_modern:
        return client.ask("block_results", height=height)
    # CometBFT 0.34 and 0.37: light/rpc/client.go hashes events, too, which no header covers.
    with pytest.raises(Refused, match="does not match with trusted last results"):
        client.ask("block_results", height=height)
    return {"height": str(height)}


def _first(side: Side) -> Trust:
    signed = side.call("commit", height="1")["signed_header"]
    block_hash = bytes.fromhex(signed["commit"]["block_id"]["hash"])
    return Trust(signed["header"]["chain_id"], 1, block_hash)


@pytest.mark.parametrize("name", [name for name in _NAMES if name != "0.34.35"])
def test_an_old_client_reads_a_new_node(
    name: str, cosmjs_node: str, go_programs: Path, tmp_path: Path
) -> None:
    """CosmJS's client of 0.34 uses a companion that serves its dialect."""
    with (
        single(name, go_programs, tmp_path) as made,
        made.companion("comet-0.34") as companion,
    ):
        ended = run(cosmjs_node, companion.url, "Tendermint34Client")

    assert ended.returncode == 0, ended.stderr


def test_a_net_of_validators_is_answered_as_by_its_node(
    go_programs: Path, tmp_path: Path
) -> None:
    version, binary = VERSIONS[_BUILT], binary_of(_BUILT, go_programs)

    assert network.compare(version, binary, tmp_path) == 0


def test_conform_finds_the_bounds_of_a_real_node(go_programs: Path, tmp_path: Path) -> None:
    """The node has its whole chain, a pruned chain, or a companion in front of it."""
    version, binary = VERSIONS[_BUILT], binary_of(_BUILT, go_programs)

    assert conformity.compare(version, binary, tmp_path, go_programs / "prunechain") == 0


def test_subscribers_hear_all_over_restarts_of_the_node(
    go_programs: Path, tmp_path: Path
) -> None:
    version, binary = VERSIONS[_BUILT], binary_of(_BUILT, go_programs)

    assert restarts.compare(version, binary, tmp_path, subscribers=10, restarts=3) == 0


@pytest.mark.skipif(not _FOLDER, reason="needs two versions")
def test_a_node_is_upgraded_in_place(go_programs: Path, tmp_path: Path) -> None:
    old, new = VERSIONS["0.34.35"], VERSIONS[_BUILT]
    binaries = binary_of(old.name, go_programs), binary_of(new.name, go_programs)

    assert upgrade.compare(old, new, binaries, tmp_path) == 0
