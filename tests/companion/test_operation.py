"""What operators see of a companion: readiness, metrics, caches, and what nodes are asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flask_noderpc.companion.backend import CompanionBackend
from flask_noderpc.companion.pool import NoUpstream
from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.errors import HeightNotAvailable, UpstreamUnavailable
from flask_noderpc.testing import SampleChain, make_chain
from flask_noderpc.testing.node import app_for
from tests.helpers.until import until

from .conftest import HEIGHTS, Companion, Serve, node_of
from .test_follow import reaches, reason
from .test_lies import Liar


def _lies_about(node: Liar, height: int) -> list[int]:
    """Let a node tell other results of the heights that are returned."""
    lying = [height]

    def of_results(results: BlockResults) -> BlockResults:
        if results.height not in lying:
            return results
        wrong = tuple(replace(each, gas_used=7777) for each in results.tx_results)
        return replace(results, tx_results=wrong)

    node.of_results = of_results
    return lying


def test_results_that_are_replaced_while_they_are_read(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are for no cache: the block that refutes them comes between read and answer."""
    inner = node_of(chain, 30)
    node = Liar(inner)
    lying = _lies_about(node, 31)
    followed = companion(serve_node(node))
    followed.follow()
    reaches(followed, 30)
    inner.append_block(chain.blocks[30])
    reaches(followed, 31)
    read = CompanionBackend.results

    def results(self: CompanionBackend, height: int) -> BlockResults:
        found = read(self, height)
        if lying:
            lying.clear()
            inner.append_block(chain.blocks[31])
            reaches(followed, 32)
        return found

    monkeypatch.setattr(CompanionBackend, "results", results)
    client = app_for(followed, dialect="comet-0.38").test_client()
    first, second = (client.get("/block_results?height=31") for _ in range(2))
    assert ("7777" in first.text, "Cache-Control" in first.headers) == (True, False)
    assert ("7777" in second.text, "Cache-Control" in second.headers) == (False, True)


def test_a_node_below_the_lowest_block(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """It can't be compared: nothing is forwarded to it, and /readyz says so, until it can."""
    followed = companion(serve_node(node_of(chain, 50)), backfill_from=30)
    followed.follow()
    reaches(followed, 50, 30)
    followed.close()

    fork = node_of(make_chain(HEIGHTS, txs_per_block=1), 10)
    reset = companion(serve_node(fork))
    reset.follow()
    until(lambda: "below the store's lowest, 30" in reason(reset), "the reason")
    with pytest.raises(UpstreamUnavailable, match="it is catching up, or was reset"):
        reset.mempool.submit(b"a=1")
    with pytest.raises(HeightNotAvailable):
        reset.block(5)
    reset.close()

    # The lowest block names the hash of the one below it.
    other = node_of(make_chain(HEIGHTS, txs_per_block=1), 29)
    assert companion(serve_node(node_of(chain, 29))).network.net_info()
    with pytest.raises(NoUpstream, match="it is of a fork, or was reset"):
        companion(serve_node(other)).network.net_info()
