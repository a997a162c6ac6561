"""Tests that CometBFT's light client verifies our chains, values and results."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from flask_noderpc.domain.block import Commit

from ..chain.fixtures import key, validator_tx, write_home
from ..chain.test_secp256k1_home import write_secp256k1_key
from ..faults.servers import Server, serving
from ..helpers.until import until
from .light import Refused, Trust, light_client
from .malicious_node import served
from .verified import BLOCK, COMMIT, HEIGHT, PARAMS, PATH, QUERY, RESULTS, TRUSTED, TX


@pytest.mark.parametrize("way", ["sequential", "skipping"])
def test_the_chain_is_verified_across_changes_of_its_validators(
    chain: tuple[Path, Trust], go_programs: Path, way: str
) -> None:
    path, trust = chain
    asked: set[int] = set()

    def note(commit: Commit) -> Commit:
        asked.add(commit.height)
        return commit

    flags = ["--sequential"] if way == "sequential" else []
    with (
        served(path, {"commit": note}) as primary,
        served(path, {}) as witness,
        light_client(go_programs / "cometbft", trust, primary, witness, *flags) as client,
    ):
        commit, block = COMMIT.to(client), BLOCK.to(client)
        steps = set(asked)
        members = client.ask("validators", height=HEIGHT)
        before = client.ask("commit", height=HEIGHT // 2)

    header = commit["signed_header"]["header"]
    assert (block["block"]["header"], header["height"]) == (header, str(HEIGHT))
    assert (members["block_height"], members["total"]) == (str(HEIGHT), "4")
    assert before["signed_header"]["header"]["height"] == str(HEIGHT // 2)
    every = set(range(TRUSTED + 1, HEIGHT + 1))
    assert (steps == every) if flags else ({HEIGHT} < steps < every)


# These dialects differ in consensus parameters.
@pytest.mark.parametrize("dialect", ["comet-0.38", "comet-0.39", "comet-0.40"])
def test_values_and_results_are_proved(
    chain: tuple[Path, Trust], go_programs: Path, dialect: str
) -> None:
    path, trust = chain
    with (
        served(path, {}, dialect) as url,
        light_client(go_programs / "cometbft", trust, url, url) as client,
    ):
        latest = QUERY.to(client)["response"]
        past = client.ask("abci_query", **QUERY.params, height=HEIGHT - 5)["response"]
        with pytest.raises(Refused, match="no proof ops"):
            client.ask("abci_query", path=PATH, data='"nobody"')
        with pytest.raises(Refused, match="height requested is too high"):
            client.ask("abci_query", **QUERY.params, height=HEIGHT)
        results, params, tx = (question.to(client) for question in (RESULTS, PARAMS, TX))

    # The value is proven by the state that the latest header carries.
    assert (latest["height"], _value(latest)) == (str(HEIGHT - 1), b"23")
    assert (past["height"], _value(past)) == (str(HEIGHT - 5), b"19")
    assert len(results["txs_results"]) == 2
    assert params["block_height"] == str(HEIGHT)
    assert base64.b64decode(tx["tx"]) == b"height=23"


def _value(response: dict[str, str]) -> bytes:
    return base64.b64decode(response["value"])


def test_a_transaction_through_the_proxy_is_proved_by_the_next_block(
    tmp_path: Path, go_programs: Path
) -> None:
    write_home(tmp_path, {1: 10, 2: 10, 3: 10}, [1, 2, 3])
    with serving(
        "gevent", tmp_path / "chain.db", dialect="comet-0.38", application="merkle"
    ) as node:
        until(lambda: _latest(node) == 1, "the first block is made")
        first = node.get("/commit?height=1")["signed_header"]["commit"]["block_id"]["hash"]
        trust = Trust("made-by-hand", 1, bytes.fromhex(first))
        with light_client(go_programs / "cometbft", trust, node.url, node.url) as client:
            client.ask("broadcast_tx_commit", tx=f'"{validator_tx(key(9), 1).decode()}"')
            sent = client.ask("broadcast_tx_commit", tx='"name=satoshi"')
            until(lambda: _latest(node) > int(sent["height"]), "the next block is made")
            found = client.ask("abci_query", path=PATH, data='"name"')["response"]
            # The fourth validator is in the set two heights after its transaction.
            members = client.ask("validators", height=int(sent["height"]) + 1)

    assert (found["height"], _value(found)) == (sent["height"], b"satoshi")
    assert members["total"] == "4"


def test_a_chain_of_a_secp256k1_key_is_proved(tmp_path: Path, go_programs: Path) -> None:
    write_secp256k1_key(tmp_path)
    with serving(
        "gevent", tmp_path / "chain.db", dialect="comet-0.38", application="merkle"
    ) as node:
        until(lambda: _latest(node) >= 1, "the first block is made")
        chain_id = node.get("/status")["node_info"]["network"]
        first = node.get("/commit?height=1")["signed_header"]["commit"]["block_id"]["hash"]
        trust = Trust(chain_id, 1, bytes.fromhex(first))
        with light_client(go_programs / "cometbft", trust, node.url, node.url) as client:
            client.ask("broadcast_tx_sync", tx='"a=b"')
            until(lambda: _latest(node) >= 3, "later blocks are made")

            commit = client.ask("commit", height=3)["signed_header"]["commit"]

    assert len(commit["signatures"]) == 1


def _latest(node: Server) -> int:
    return int(node.get("/status")["sync_info"]["latest_block_height"])


def test_a_chain_that_begins_with_another_block_is_not_begun_with(
    chain: tuple[Path, Trust], go_programs: Path
) -> None:
    path, trust = chain
    with (
        served(path, {}) as url,
        pytest.raises(Refused, match=r"expected header's hash 6{64}, but got"),
        light_client(go_programs / "cometbft", replace(trust, hash=b"\x66" * 32), url, url),
    ):
        pass
