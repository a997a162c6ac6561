"""A chain of 180 validators, read from our store and from the stores of CometBFT's own
packages.

`cometbft inspect` serves the latter, which go/savechain fills from our node's responses.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.realistic.__main__ import extend
from benchmarks.realistic.content import Shape
from flask_noderpc import SQLiteBackend
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.node import app_for, serve
from tests.differential.http_client import Ask, ask
from tests.differential.sides import inspected

from ..helpers.until import PATIENCE

# A power changes at height 50, and is in effect from 52 on.
SHAPE, BLOCKS = Shape("inspected", txs=3), 53


@dataclass(frozen=True, slots=True)
class Twins:
    """One chain, served by our node and by CometBFT."""

    ours: str
    theirs: str
    store: SQLiteBackend


@pytest.fixture(scope="module")
def twins(go_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    folder = tmp_path_factory.mktemp("inspect")
    store = SQLiteBackend(folder / "chain.db")
    extend(store, SHAPE, BLOCKS)
    try:
        with serve(app_for(store, dialect="comet-0.38")) as url:
            _save(go_programs, url, folder / "home")
            with inspected(go_programs / "cometbft", folder / "home") as side:
                yield Twins(url, side.url, store)
    finally:
        store.close()


def _save(programs: Path, url: str, home: Path) -> None:
    init: list[str | Path] = [programs / "cometbft", "init", "--home", home]
    subprocess.run(init, check=True, capture_output=True, timeout=PATIENCE)
    saved = subprocess.run(
        [programs / "savechain", url, home], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (saved.stdout, saved.stderr) == (f"{BLOCKS}\n", "")


def test_the_generated_chain_verifies(twins: Twins) -> None:
    assert twins.store.verify() == BLOCKS


HEIGHTS = (1, 2, 49, 50, 51, 52, BLOCKS)
PATHS = [
    *(f"/{route}?height={height}"
      for route in ("block", "block_results", "commit", "header", "consensus_params")
      for height in HEIGHTS),
    *(f"/validators?height={height}&per_page=100&page={page}"
      for height in (*HEIGHTS, BLOCKS + 1, BLOCKS + 2)
      for page in (1, 2)),
    "/blockchain",
    "/blockchain?minHeight=3&maxHeight=9",
    "/validators?height=9000",
    "/tx_search?query=\"tx.height=50\"&prove=true",
    "/tx_search?query=\"message.action='/cosmos.bank.v1beta1.MsgSend'\"&per_page=7&page=3",
    "/tx_search?query=\"transfer.amount EXISTS AND tx.height>51\"&order_by=\"desc\"",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_is_that_of_cometbft_over_the_same_chain(twins: Twins, path: str) -> None:
    request = Ask(path, path=path.replace(" ", "%20"))

    assert ask(twins.ours, request).body == ask(twins.theirs, request).body


def test_answers_by_hash_are_those_of_cometbft(twins: Twins) -> None:
    block_id, _ = twins.store.reads.block(BLOCKS)
    digest = tx_hash(twins.store.reads.latest_txs(1)[0].tx)

    for path in (
        f"/block_by_hash?hash=0x{block_id.hash.hex()}",
        f"/header_by_hash?hash=0x{block_id.hash.hex()}",
        f"/tx?hash=0x{digest.hex()}&prove=true",
    ):
        request = Ask(path, path=path)
        assert ask(twins.ours, request).body == ask(twins.theirs, request).body
