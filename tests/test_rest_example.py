"""Tests of the example of a backend over a node's REST API, in front of nodes and of
garbage."""

from __future__ import annotations

import runpy
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, Response

from flask_noderpc import ChainBackend, MemoryChain
from flask_noderpc.errors import ResultNotFound
from flask_noderpc.protocol.comet.chain_state import check_signatures
from flask_noderpc.protocol.comet.hashes import block_id, tx_hash
from flask_noderpc.testing import SampleChain, make_chain
from flask_noderpc.testing.contract import ChainBackendContract
from flask_noderpc.testing.node import app_for, serve

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "rest_backend.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """Return the names of the example."""
    return runpy.run_path(str(EXAMPLE))


def upstream(chain: SampleChain) -> ChainBackend:
    """Return the chain of the node behind the backend."""
    return ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))


class TestRestChain(ChainBackendContract):
    """Test the backend's contract, over HTTP."""

    @pytest.fixture(autouse=True)
    def _servers(self, example: dict[str, Any]) -> Iterator[None]:
        self.chain_class = example["RestChain"]
        with ExitStack() as self.stack:
            yield

    def make_backend(self, chain: SampleChain) -> ChainBackend:
        """Return the backend in front of a node that serves the chain."""
        app = app_for(upstream(chain), dialect="comet-0.38")
        url = self.stack.enter_context(serve(app))
        return ChainBackend(self.chain_class(url))

    def test_the_whole_chain_verifies(self, backend: ChainBackend, chain: SampleChain) -> None:
        """Verify hashes, votes and members only, as no route shows the proposer of a set."""
        node = upstream(chain)
        for item in chain.blocks:
            height = item.block.header.height
            members = node.reads.validators(height)
            assert backend.reads.validators(height).validators == members.validators
            check_signatures(chain.genesis.chain_id, backend.reads.commit(height), members)
            assert block_id(backend.reads.block(height)[1]) == block_id(item.block)

    def test_validators_are_known_two_heights_ahead(self, backend: ChainBackend) -> None:
        """A node has validators one height above the latest."""
        low, high = backend.reads.base_height(), backend.reads.latest_height()
        for height in range(low, high + 2):
            assert backend.reads.validators(height).total_power > 0
        for height in (low - 1, high + 2, 1 << 62):
            with pytest.raises(ResultNotFound):
                backend.reads.validators(height)


def test_hundreds_of_validators_are_read_page_by_page(example: dict[str, Any]) -> None:
    chain = make_chain(4, powers=(1,) * 230)
    with serve(app_for(upstream(chain), dialect="comet-0.38")) as url:
        found = example["RestChain"](url).validators(1)

    assert found.validators == upstream(chain).reads.validators(1).validators


PATHS = (
    "/block?height=3",
    "/block?height=4",
    "/block",
    "/commit?height=3",
    "/block_results?height=3",
    "/blockchain?minHeight=2&maxHeight=4",
    "/validators?height=3",
    "/consensus_params?height=3",
    "/genesis",
    "/tx?hash=0x{tx}&prove=true",
    "/block_by_hash?hash=0x{block}",
    "/block?height=99",
    "/block_results?height=99",
    "/tx?hash=0x00",
)


@pytest.mark.parametrize("dialect", ["comet-0.34", "comet-0.37", "comet-0.38", "comet-1.0"])
def test_rest_backend_answers_equal_those_of_the_node(
    example: dict[str, Any], dialect: str
) -> None:
    chain = make_chain(5)
    node = app_for(upstream(chain), dialect=dialect)
    known = {
        "tx": tx_hash(chain.blocks[2].block.txs[0]).hex(),
        "block": block_id(chain.blocks[2].block)[0].hash.hex(),
    }
    with serve(node) as url:
        front = app_for(
            ChainBackend(example["RestChain"](url, dialect)), dialect=dialect
        ).test_client()
        for path in (path.format(**known) for path in PATHS):
            assert front.get(path).get_json() == node.test_client().get(path).get_json(), path


@pytest.mark.parametrize("dialect", ["document", "comet-0.34", "comet-1.0"])
def test_the_state_of_consensus_is_shown_without_a_proposer(
    example: dict[str, Any], dialect: str
) -> None:
    with serve(app_for(upstream(make_chain(5)), dialect="comet-0.38")) as url:
        client = app_for(ChainBackend(example["RestChain"](url)), dialect=dialect).test_client()
        short = client.get("/consensus_state").get_json()["result"]["round_state"]
        whole = client.get("/dump_consensus_state").get_json()["result"]["round_state"]

    assert short["proposer"] == {"address": "", "index": -1}
    assert whole["validators"]["proposer"] is None


def test_the_example_s_app_serves_the_document_in_front_of_a_node(
    example: dict[str, Any],
) -> None:
    backend = upstream(make_chain(5))
    with serve(app_for(backend, dialect="comet-0.38")) as url:
        answer = example["create_app"](url).test_client().get("/block?height=3").get_json()

    assert answer == app_for(backend).test_client().get("/block?height=3").get_json()


BAD_ANSWERS: list[tuple[bytes, int, str]] = [
    (b"", 200, "genesis: the node did not answer with JSON"),
    (b"<html>", 404, "genesis: the node did not answer with JSON"),
    (b"[" * 200_000, 200, "genesis: the node did not answer with JSON"),
    (b"[]", 200, "genesis: the node refused: []"),
    (
        b'{"error":{"data":"later"}}',
        500,
        "genesis: the node refused: {'error': {'data': '",
    ),
    (b'{"result":5}', 200, "expected an object, got 5"),
    (b'{"result":{"genesis":{"genesis_time":7}}}', 200, "genesis.genesis_time: "),
    (b'{"result":"' + b"x" * 10_000 + b'"}', 200, "the node's answer is too long"),
]


@pytest.mark.parametrize(("body", "status", "text"), BAD_ANSWERS, ids=range(len(BAD_ANSWERS)))
def test_a_malformed_upstream_answer_is_a_clear_error(
    example: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    body: bytes,
    status: int,
    text: str,
) -> None:
    node = Flask("no node")
    node.add_url_rule("/genesis", view_func=lambda: Response(body, status))
    with serve(node) as url:
        limit = 300_000 if body.startswith(b"[") else 5_000
        reads = example["RestChain"](url, max_bytes=limit)
        answer = app_for(ChainBackend(reads)).test_client().get("/genesis")

    assert answer.status_code == 500
    assert answer.get_json()["error"]["data"].startswith(text)
    assert len(answer.data) < 1_000
    assert "Traceback" not in caplog.text


def test_a_node_that_is_not_there_is_an_error(example: dict[str, Any]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        reads = example["RestChain"](f"http://127.0.0.1:{unused.getsockname()[1]}")
        answer = app_for(ChainBackend(reads)).test_client().get("/genesis")

    assert answer.status_code == 500
    assert "the node can't be reached" in answer.get_json()["error"]["data"]
