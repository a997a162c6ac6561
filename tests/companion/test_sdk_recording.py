"""Tests of a recorded chain of the Cosmos SDK, which is imported, followed and served as by its
node."""

from __future__ import annotations

from pathlib import Path

import pytest

from flask_noderpc.testing.node import app_for, serve
from tests.helpers.stores import make_store

from ..clients.sdk_chain import RECORDING, followed, imported, reply
from ..differential.http_client import Ask, ask
from .recording import Recording, played


@pytest.fixture(scope="module")
def recording() -> Recording:
    return Recording.read(RECORDING)


@pytest.fixture(scope="module")
def height(recording: Recording) -> int:
    """Return the height of the head, whose responses are not compared."""
    return 1 + sum(path.startswith("/block_results?") for path in recording.paths)


def _different(recording: Recording, url: str) -> list[str]:
    """Return the paths with different responses."""
    found = []
    for path, expected in recording.paths.items():
        told = reply(url, path)
        if (told.status, told.body) != expected:
            found.append(path)
    return found


def test_a_companion_answers_as_the_recorded_node(
    recording: Recording, height: int, tmp_path: Path
) -> None:
    """The paths are those of blocks, results, proofs and searches, and of forwarded calls."""
    with (
        played(recording) as node,
        followed(node, tmp_path / "chain.db", height) as own,
    ):
        assert _different(recording, own) == []


def test_an_import_serves_the_blocks_of_the_recorded_node(
    recording: Recording, height: int, tmp_path: Path
) -> None:
    """Without a node there is no application to query."""
    with played(recording) as node:
        imported(node, tmp_path / "chain.db", height - 1)

    store = make_store(tmp_path / "chain.db")
    try:
        assert store.verify() == height - 1
        with serve(app_for(store, dialect="comet-0.38")) as own:
            # The commit of the latest block is not canonical.
            others = {"/abci_info", f"/commit?height={height - 1}"}
            assert set(_different(recording, own)) == others
    finally:
        store.close()


def test_a_call_that_was_not_recorded_fails_the_test(recording: Recording) -> None:
    asked = Ask("block", "POST", body='{"id":7,"method":"block","params":{"height":"99999"}}')
    with pytest.raises(AssertionError, match="not in the recording"), played(recording) as url:
        told = ask(url, asked)

    assert '"id":7,"error":{"code":-32603,"message":"not in the recording"' in told.body
