"""Tests of searches of a companion whose index lacks heights: the response is the node's, or an
error."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from flask_noderpc import MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.companion.backend import CompanionBackend
from flask_noderpc.domain.block import Block, BlockID
from flask_noderpc.domain.search import FoundHeights, FoundTxs, Page, Search, SearchLimits
from flask_noderpc.errors import HeightNotAvailable, Refused, SearchIncomplete
from flask_noderpc.events.query import parse
from flask_noderpc.events.search import tx_search
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import app_for, run_node, serve
from tests.helpers.until import PATIENCE, until
from tests.helpers.websocket import WebSocketClient

from .conftest import Companion, Serve, node_of
from .test_follow import grown, reaches
from .test_import import NODES, get

BASE, HEAD = 40, 60
SEARCHES = 60
COVERAGE, PROVENANCE = "X-NodeRPC-Coverage", "X-NodeRPC-Provenance"


def marks(url: str) -> dict[str, str]:
    with urlopen(url, timeout=PATIENCE) as response:
        return {name: response.headers[name] for name in (COVERAGE, PROVENANCE)}


def _condition(draw: random.Random) -> str:
    height = draw.randrange(HEAD + 5)
    kinds: list[Callable[[], str]] = [
        lambda: f"tx.height {draw.choice(['>', '>=', '<', '<='])} {height}",
        lambda: f"tx.height = {height}",
        lambda: f"app.key = 'key{height}'",
        lambda: f"app.key CONTAINS '{height % 10}'",
        lambda: "app.creator CONTAINS 'Cosmoshi'",
        lambda: "app.index_key EXISTS",
        lambda: "app.nothing EXISTS",
    ]
    return draw.choice(kinds)()


def random_search(draw: random.Random) -> str:
    """Return the path of a random search."""
    query = " AND ".join(_condition(draw) for _ in range(draw.choice([1, 1, 2, 3])))
    method = draw.choice(["tx_search", "tx_search", "block_search"])
    if method == "block_search":
        query = query.replace("tx.height", "block.height")
    path = f'{method}?query="{quote(query)}"&page={draw.randrange(1, 4)}'
    path += f"&per_page={draw.choice([1, 2, 5, 30, 100])}"
    path += draw.choice(["", '&order_by="asc"', '&order_by="desc"'])
    return path + draw.choice(["", "&prove=true"] if method == "tx_search" else [""])


def partly(companion: Companion, *urls: str, head: int = HEAD) -> CompanionBackend:
    """Follow a chain without backfilling the blocks below ``BASE``."""
    followed = companion(*urls, backfill_from=BASE)
    followed.follow()
    reaches(followed, head, BASE)
    return followed


@pytest.mark.parametrize("dialect", NODES)
def test_searches_are_answered_as_by_the_node(dialect: str, companion: Companion) -> None:
    draw, found = random.Random(dialect), 0
    with run_node(dialect=dialect) as node:
        followed = partly(companion, grown(node, HEAD).url)
        with serve(app_for(followed, dialect=dialect)) as own:
            for _ in range(SEARCHES):
                path = random_search(draw)
                answer = get(f"{node.url}/{path}")
                assert get(f"{own}/{path}") == answer, path
                found += b'"total_count":"0"' not in answer and b'"result"' in answer
    assert found > SEARCHES // 10


def test_what_a_node_answers_is_marked_and_what_is_stored_is_not(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    followed = partly(companion, serve_node(node_of(chain, HEAD)))
    with serve(app_for(followed, dialect="comet-0.38")) as own:

        def told(query: str) -> dict[str, str]:
            return marks(f'{own}/tx_search?query="{quote(query)}"')

        forwarded = {COVERAGE: None, PROVENANCE: "unverified"}
        assert told("app.index_key EXISTS") == forwarded
        assert told(f"tx.height >= {BASE - 1}") == forwarded
        stored = {COVERAGE: None, PROVENANCE: None}
        assert told(f"tx.height >= {BASE}") == stored
        assert told(f"app.index_key EXISTS AND tx.height > {BASE}") == stored


def test_windows_that_are_no_pages_of_a_node_are_read_from_two(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    node = node_of(chain, HEAD)
    followed = partly(companion, serve_node(node))
    search = tx_search(parse("app.index_key EXISTS"))
    assert search is not None
    for offset in (0, 1, 3, 7, 10_000):
        page = Page(offset, 5, newest_first=offset % 2 == 1)
        assert followed.reads.search_txs(search, page, SearchLimits()) == node.reads.search_txs(
            search, page, SearchLimits()
        )


class Keeping(MemoryChain):
    """A node that has pruned blocks, but not its index."""

    searches = 0

    def search_txs(
        self, search: Search, page: Page, limits: SearchLimits, prove: bool = False
    ) -> FoundTxs:
        self.searches += 1
        try:
            return super().search_txs(search, page, limits, prove)
        finally:
            self.searches -= 1

    def block(self, height: int) -> tuple[BlockID, Block]:
        if height < BASE and not self.searches:
            raise HeightNotAvailable(height, BASE, self.latest_height())
        return super().block(height)


@contextmanager
def searched(
    kind: type[Keeping], chain: SampleChain, serve_node: Serve, companion: Companion
) -> Iterator[str]:
    """Follow a node down to its lowest block; yield the URL of a search with equal
    responses."""
    node = serve_node(ChainBackend(kind(chain.genesis, chain.blocks[:HEAD], state=chain.state)))
    followed = companion(node)
    followed.follow()
    reaches(followed, HEAD, BASE)
    path = f'tx_search?query="{quote("app.index_key EXISTS")}"&per_page=100'
    with serve(app_for(followed, dialect="comet-0.38")) as own:
        assert get(f"{own}/{path}") == get(f"{node}/{path}")
        yield f"{own}/{path}"


def test_a_node_that_pruned_its_blocks_and_not_its_index_is_asked_for_good(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    with searched(Keeping, chain, serve_node, companion) as url:
        assert get(url).count(b'"hash"') > HEAD - BASE


class Forgetful(Keeping):
    """A node that has pruned its index, too."""

    def search_txs(
        self, search: Search, page: Page, limits: SearchLimits, prove: bool = False
    ) -> FoundTxs:
        return super().search_txs(_above(search), page, limits, prove)

    def search_blocks(self, search: Search, page: Page, limits: SearchLimits) -> FoundHeights:
        return super().search_blocks(_above(search), page, limits)


def _above(search: Search) -> Search:
    return Search(search.terms, max(search.low, BASE), max(search.high, BASE - 1))


def test_what_no_node_knows_is_searched_in_the_store_and_marked(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    with searched(Forgetful, chain, serve_node, companion) as url:
        covered = {COVERAGE: f"{BASE}-{HEAD}", PROVENANCE: None}
        assert marks(url) == covered
        # The response was not cached.
        assert marks(url) == covered


@pytest.mark.parametrize("dialect", ["document", "comet-0.38"])
def test_a_search_in_part_is_refused_over_a_websocket(
    dialect: str, chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """Over a websocket responses have no headers, so nothing would tell which heights are left
    out."""
    node = Forgetful(chain.genesis, chain.blocks[:HEAD], state=chain.state)
    followed = companion(serve_node(ChainBackend(node)))
    followed.follow()
    reaches(followed, HEAD, BASE)
    with (
        serve(app_for(followed, dialect=dialect)) as own,
        closing(WebSocketClient(own)) as client,
    ):
        for method, height in (("tx_search", "tx.height"), ("block_search", "block.height")):
            error = client.asked(method, {"query": "app.index_key EXISTS"})["error"]
            assert f"covers only heights {BASE}-{HEAD}" in error["data"]
            assert f"add tx.height >= {BASE} to the query" in error["data"]
            bounded = {"query": f"app.index_key EXISTS AND {height} >= {BASE}"}
            assert "total_count" in client.asked(method, bounded)["result"]


class Unindexed(MemoryChain):
    """A node without an index."""

    def search_txs(
        self, search: Search, page: Page, limits: SearchLimits, prove: bool = False
    ) -> FoundTxs:
        raise Refused("transaction indexing is disabled")

    def search_blocks(self, search: Search, page: Page, limits: SearchLimits) -> FoundHeights:
        raise Refused("block indexing is disabled")


def test_without_a_node_that_knows_more_a_search_is_refused_with_the_cure(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    unindexed = ChainBackend(Unindexed(chain.genesis, chain.blocks[:HEAD], state=chain.state))
    url = serve_node(unindexed)
    followed = partly(companion, url)
    search = tx_search(parse("app.index_key EXISTS"))
    assert search is not None
    with pytest.raises(SearchIncomplete, match="transaction indexing is disabled") as refused:
        followed.reads.search_txs(search, Page(0, 5), SearchLimits())
    assert f"a query with tx.height >= {BASE}" in refused.value.hint
    bounded = tx_search(parse(f"app.index_key EXISTS AND tx.height >= {BASE}"))
    assert bounded is not None
    assert followed.reads.search_txs(bounded, Page(0, 5), SearchLimits()).total > 0
    # Another node may have an index.
    both = companion(url, serve_node(node_of(chain, HEAD)))
    assert both.reads.search_txs(search, Page(0, 100), SearchLimits()).total > HEAD - BASE


def test_a_node_that_is_behind_the_store_is_not_asked(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """A client that has seen a block finds it, whichever node is asked first."""
    behind = serve_node(node_of(chain, HEAD - 5))
    followed = partly(companion, serve_node(node_of(chain, HEAD)), behind)
    search = tx_search(parse("app.index_key EXISTS"))
    assert search is not None
    for _ in range(4):
        page = Page(0, 1, newest_first=True)
        (found,) = followed.reads.search_txs(search, page, SearchLimits()).txs
        assert found.height == HEAD


def test_an_archive_that_is_down_may_know_more(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    pruned = serve_node(
        ChainBackend(Forgetful(chain.genesis, chain.blocks[:HEAD], state=chain.state))
    )
    followed = companion(pruned, "http://127.0.0.1:9")
    followed.follow()
    reaches(followed, HEAD, BASE)
    search = tx_search(parse("app.index_key EXISTS"))
    assert search is not None
    with pytest.raises(SearchIncomplete):
        followed.reads.search_txs(search, Page(0, 5), SearchLimits())


class Lying(MemoryChain):
    """A node whose total is larger than its results."""

    def search_txs(
        self, search: Search, page: Page, limits: SearchLimits, prove: bool = False
    ) -> FoundTxs:
        found = super().search_txs(search, page, limits, prove)
        return FoundTxs(found.total + 1000, found.txs[:1])


def test_pages_that_no_search_has_are_those_of_another_node(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    liar = serve_node(
        ChainBackend(Lying(chain.genesis, chain.blocks[:HEAD], state=chain.state))
    )
    node = node_of(chain, HEAD)
    followed = partly(companion, liar, serve_node(node))
    search = tx_search(parse("app.index_key EXISTS"))
    assert search is not None
    expected = node.reads.search_txs(search, Page(0, 5), SearchLimits())
    for _ in range(3):
        assert followed.reads.search_txs(search, Page(0, 5), SearchLimits()) == expected


def test_they_come_from_the_store_once_it_has_all(companion: Companion) -> None:
    path = f'tx_search?query="{quote("app.index_key EXISTS")}"'
    with run_node(dialect="comet-0.38") as node:
        followed = companion(grown(node, 30).url)
        followed.follow()
        reaches(followed, 30)
        with serve(app_for(followed, dialect="comet-0.38")) as own:
            until(lambda: marks(f"{own}/{path}") == {COVERAGE: None, PROVENANCE: None}, "all")
            assert get(f"{own}/{path}") == get(f"{node.url}/{path}")
