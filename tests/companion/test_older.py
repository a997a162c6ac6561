"""Tests of heights that a store lacks and a node has: they are served as by the node, and
marked if unproven."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.request import urlopen

import pytest

from flask_noderpc import ChainBackend
from flask_noderpc.companion import proven_headers
from flask_noderpc.companion.backend import CompanionBackend
from flask_noderpc.domain.block import BlockMeta
from flask_noderpc.errors import HeightNotAvailable, NotFound, TxNotFound
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import app_for, run_node, serve
from tests.helpers.growing import grow
from tests.helpers.until import PATIENCE, until

from .conftest import Companion, Serve, node_of
from .raw_node import raw_node
from .test_follow import grown, reaches
from .test_gaps import Broken
from .test_import import get, paths
from .test_lies import (
    Liar,
    Lie,
    _commit,
    _forged,
    _members,
    _no_votes,
    _parameters,
    _results,
    _txs,
)

BASE, HEAD = 40, 60


def headers_of(url: str) -> dict[str, str]:
    """Return the headers of a response that tell how far it is proven."""
    with urlopen(url, timeout=PATIENCE) as response:
        names = ("Cache-Control", "X-NodeRPC-Provenance")
        return {name: response.headers[name] for name in names if name in response.headers}


PROVEN = {"Cache-Control": "public, max-age=86400"}
UNVERIFIED = {"X-NodeRPC-Provenance": "unverified"}


@pytest.mark.parametrize("dialect", ["comet-0.34", "comet-0.38", "comet-0.40", "comet-1.0"])
def test_they_are_answered_as_by_the_node(dialect: str, companion: Companion) -> None:
    """Responses are equal byte for byte, from below the store's lowest block and across it."""
    with run_node(dialect=dialect) as node:
        followed = companion(grown(node, 30).url, backfill_from=20)
        followed.follow()
        reaches(followed, 30, 20)
        pages = ["/blockchain?minHeight=3&maxHeight=9", "/blockchain?minHeight=12&maxHeight=25"]
        with serve(app_for(followed, dialect=dialect)) as own:
            for path in (*paths(node.chain), *pages):
                assert get(own + path) == get(node.url + path), path
            assert b"must be less than or equal to" in get(f"{own}/block?height=99")
            assert followed.reads.base_height() == 20
    # The error is the store's own, as there is no node to ask.
    with pytest.raises(HeightNotAvailable, match="lowest height is 20"):
        followed.reads.block(5)


def test_validators_of_stored_heights_are_answered_during_the_backfill(
    companion: Companion,
) -> None:
    """The store has their validator sets once it knows where each began."""
    with run_node(dialect="comet-0.38") as node:
        slow = Broken(grown(node, HEAD).url, "block", "no answer", below=30, above=0)
        with raw_node(slow.respond) as url:
            followed = companion(url)
            followed.follow()
            until(lambda: 1 < followed.reads.base_height() <= BASE + 1, "a part of the blocks")
            reaches(followed, HEAD, base := followed.reads.base_height())
            with serve(app_for(followed, dialect="comet-0.38")) as own:
                for height in range(base, HEAD):
                    for route in ("validators", "consensus_params"):
                        path = f"{route}?height={height}"
                        assert get(f"{own}/{path}") == get(f"{node.url}/{path}")
            client = app_for(followed, dialect="comet-0.38").test_client()
            for path, status, state in (
                ("/readyz", 200, "ready"),
                ("/readyz?full", 503, "not complete"),
            ):
                answer = client.get(path)
                assert answer.status_code == status
                assert re.match(rf"{state}: the backfill has \d+ blocks left", answer.text)
            slow.is_broken = False
            slow.released.set()
            until(lambda: client.get("/readyz?full").status_code == 200, "all blocks")
            assert followed.reads.base_height() == 1


def followed_from(companion: Companion, *urls: str, head: int = HEAD) -> CompanionBackend:
    """Follow a chain without backfilling the blocks below ``BASE``."""
    followed = companion(*urls, backfill_from=BASE)
    followed.follow()
    reaches(followed, head, BASE)
    return followed


def test_what_the_headers_prove_may_be_cached(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks further down are marked as not proven, and must not be cached."""
    monkeypatch.setattr(proven_headers, "MAX_HEADERS", 25)
    followed = followed_from(companion, serve_node(node_of(chain, HEAD)))
    near, far = BASE - 24, BASE - 26
    with serve(app_for(followed, dialect="comet-0.38")) as own:

        def told(height: int) -> dict[str, dict[str, str]]:
            block = chain.blocks[height - 1].block
            block_hash = hashes.header_hash(block.header).hex()
            tx_hash = hashes.tx_hash(block.txs[0]).hex()
            at_height = [
                f"{route}?height={height}"
                for route in (
                    "block", "header", "commit", "block_results", "validators",
                    "consensus_params",
                )
            ]  # fmt: skip
            by_hash = [
                f"{route}?hash=0x{block_hash}" for route in ("block_by_hash", "header_by_hash")
            ]
            page = f"blockchain?minHeight={height}&maxHeight={height}"
            return {
                path: headers_of(f"{own}/{path}")
                for path in (*at_height, *by_hash, f"tx?hash=0x{tx_hash}", page)
            }

        for path, found in told(far).items():
            assert found == UNVERIFIED, path
        for path, found in told(near).items():
            if path.startswith("blockchain"):
                # Nothing proves sizes and numbers of transactions.
                assert found == UNVERIFIED
            else:
                assert found == ({} if path.startswith("tx?") else PROVEN), path
        assert headers_of(f"{own}/block?height={BASE}") == PROVEN


def test_a_batch_is_marked_if_one_answer_is(
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next request of the same connection is not marked."""
    monkeypatch.setattr(proven_headers, "MAX_HEADERS", 1)
    followed = followed_from(companion, serve_node(node_of(chain, HEAD)))
    client = app_for(followed, dialect="comet-0.38").test_client()

    def marks(*heights: int) -> str | None:
        calls = [
            {"jsonrpc": "2.0", "id": at, "method": "block", "params": {"height": str(at)}}
            for at in heights
        ]
        body = calls if len(calls) > 1 else calls[0]
        return client.post("/", json=body).headers.get("X-NodeRPC-Provenance")

    for _ in range(2):
        assert marks(5, BASE) == marks(BASE, 5) == marks(5) == "unverified"
        assert marks(BASE) is marks(BASE, BASE + 1) is None


Read = Callable[[ChainBackend, int], object]


def _headers(node: Liar) -> None:
    def block_metas(low: int, high: int) -> tuple[BlockMeta, ...]:
        found = node.inner.reads.block_metas(low, high)
        return tuple(replace(each, header=replace(each.header, time=1)) for each in found)

    node.reads.block_metas = block_metas  # type: ignore[method-assign]


LIES: dict[str, tuple[Lie, Read]] = {
    "a transaction": (
        _txs(lambda txs: (b"forged=1", *txs[1:])),
        lambda node, height: node.reads.block(height),
    ),
    "a block that fits its own hash": (
        _forged(app_hash=b"x" * 8),
        lambda node, height: node.reads.block(height),
    ),
    "headers on the way down": (_headers, lambda node, height: node.reads.block(height)),
    "a header": (_headers, lambda node, height: node.reads.block_meta(height)),
    "the gas": (
        _results(lambda result: replace(result, gas_used=result.gas_used + 1)),
        lambda node, height: node.reads.results(height),
    ),
    "a vote": (_commit(_no_votes), lambda node, height: node.reads.commit(height)),
    "a power": (
        _members(lambda found: (replace(found[0], voting_power=99), *found[1:])),
        lambda node, height: node.reads.validators(height).validators,
    ),
    "a limit": (_parameters, lambda node, height: node.reads.consensus_params(height)),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_not_served(
    name: str, chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """Another node is asked, whichever is first; without one the height is missing."""
    lie, read = LIES[name]
    honest, height = node_of(chain, HEAD), BASE - 10
    url = serve_node(honest)
    followed_from(companion, url).close()

    def read_of(*others: str) -> object:
        liar = Liar(node_of(chain, HEAD))
        backend = companion(serve_node(liar), *others)
        for _ in range(2):
            # Each node is checked before the liar starts to lie.
            backend.network.net_info()
        lie(liar)
        return read(backend, height), read(backend, height)

    with pytest.raises(NotFound):
        read_of()
    assert read_of(url) == (read(honest, height),) * 2


def test_a_tx_above_the_head_is_not_found(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """The block is not found either."""
    inner = node_of(chain, HEAD)
    followed = followed_from(companion, serve_node(inner))
    followed.close()
    serving = companion(serve_node(inner))
    grow(inner, chain.blocks[HEAD])
    tx_hash = hashes.tx_hash(chain.blocks[HEAD].block.txs[0])
    assert serving.reads.latest_height() == HEAD
    with pytest.raises(TxNotFound):
        serving.reads.tx(tx_hash)
