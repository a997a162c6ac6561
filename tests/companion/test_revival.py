"""Tests of stores that were off for longer than the trusting period, which continue with a
newer trusted header."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flask_noderpc import SQLiteBackend
from flask_noderpc.cli import main
from flask_noderpc.companion import revival, shared_state
from flask_noderpc.companion.backend import CompanionBackend
from flask_noderpc.companion.beginning import FetchOptions
from flask_noderpc.companion.head_age import HeadAge
from flask_noderpc.companion.importer import Importer
from flask_noderpc.companion.trust import TrustOptions
from flask_noderpc.domain.block import Block, BlockMeta
from flask_noderpc.domain.time import SECOND
from flask_noderpc.errors import (
    ConfigurationError,
    HeightNotAvailable,
    NodeRPCError,
    UpstreamUnavailable,
)
from flask_noderpc.protocol.comet.hashes import header_hash
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.chains import ChainMaker, make_blocks
from tests.helpers.growing import grow
from tests.helpers.until import until

from .conftest import (
    OLD,
    RECENT,
    TRUST,
    Companion,
    Serve,
    import_all,
    make_recent_chain,
    node_of,
    upstreams_at,
)
from .test_follow import reaches, reason
from .test_import import pruned
from .test_lies import Liar

HEAD = 10
WEEKS = 14 * 86_400.0


def hash_of(chain: SampleChain, height: int) -> bytes:
    """Return the hash of a header."""
    return header_hash(chain.blocks[height - 1].block.header)


def trusting(chain: SampleChain, height: int) -> FetchOptions:
    """Return options that trust a header for the default period."""
    return FetchOptions(TrustOptions(height, hash_of(chain, height)))


def forget_newest(backend: CompanionBackend) -> None:
    """Make the store look as if it had been off since its head was the newest block."""
    shared_state.set_newest_seen(backend.store, 0, 0)


@pytest.fixture
def url(recent_chain: SampleChain, serve_node: Serve) -> str:
    """The URL of a node of the chain."""
    return serve_node(node_of(recent_chain, RECENT))


@pytest.fixture
def old_store(url: str, store: SQLiteBackend) -> SQLiteBackend:
    """A store whose head has a time in the year 2023."""
    import_all(store, upstreams_at(url), 1, HEAD)
    return store


@pytest.mark.parametrize("trusted", [OLD + 2, 55, RECENT])
def test_an_import_goes_on_by_a_newer_trusted_header(
    trusted: int, recent_chain: SampleChain, url: str, old_store: SQLiteBackend
) -> None:
    """Later imports do not need it, but accept it."""
    options = trusting(recent_chain, trusted)

    assert import_all(old_store, upstreams_at(url), 1, RECENT - 2, options) == (1, RECENT - 2)

    for given in (FetchOptions(), options):
        import_all(old_store, upstreams_at(url), options=given)
    assert old_store.reads.latest_height() == RECENT - 1
    assert old_store.verify() == RECENT - 1


@pytest.mark.parametrize("head_delay", [0, 1])
def test_a_companion_goes_on_by_a_newer_trusted_header(
    head_delay: int, recent_chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """The companion goes past the trusted header; restarts work without it and with it."""
    node = node_of(recent_chain, HEAD)
    url = serve_node(node)
    first = companion(url)
    first.follow()
    reaches(first, HEAD)
    first.close()
    forget_newest(first)
    grow(node, *recent_chain.blocks[HEAD : RECENT - 2])
    given: dict[str, Any] = {"trust_period": WEEKS, "head_delay": head_delay}

    off = companion(url, **given)
    off.follow()
    until(lambda: "pass --trust HEIGHT:HASH of a newer header" in reason(off), "the reason")
    assert f"its head {HEAD}: expected a header that is at most 14 days" in reason(off)
    assert "got one of 2023-11-14T22:13:" in reason(off)
    off.close()

    trust = f"60:{hash_of(recent_chain, 60).hex()}"
    revived = companion(url, trust=trust, **given)
    revived.follow()
    reaches(revived, RECENT - 2 - head_delay)
    assert not reason(revived)
    revived.close()
    for number, settings in enumerate((given, given | {"trust": trust})):
        grow(node, recent_chain.blocks[RECENT - 2 + number])
        again = companion(url, **settings)
        again.follow()
        reaches(again, RECENT - 1 + number - head_delay)
        assert again.store.verify() == RECENT - 1 + number - head_delay
        again.close()


def test_the_command_goes_on_by_a_newer_trusted_header(
    recent_chain: SampleChain, url: str, tmp_path: Path
) -> None:
    command = ["import", url, "--database", str(tmp_path / "copy.db")]
    CliRunner().invoke(main, [*command, "--to", str(HEAD)])

    refused = CliRunner().invoke(main, command)
    trust = f"60:{hash_of(recent_chain, 60).hex()}"
    done = CliRunner().invoke(main, [*command, "--trust", trust])

    assert refused.exit_code == 78
    assert "pass --trust HEIGHT:HASH of a newer header" in refused.output
    assert done.exit_code == 0, done.output
    assert f"has blocks 1 to {RECENT - 1} of sample-chain" in done.output


class Interrupted(Exception):
    pass


def test_an_interruption_costs_only_time(
    recent_chain: SampleChain,
    url: str,
    old_store: SQLiteBackend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The hashes of many headers are stored in a file meanwhile."""
    monkeypatch.setattr(revival, "STEP", 7)
    monkeypatch.setattr(revival, "_MAX_MEMORY", 100)

    def interrupt(count: int) -> None:
        raise Interrupted

    options = trusting(recent_chain, 70)
    for head in (HEAD + 20, HEAD + 40):
        importer = Importer(old_store, upstreams_at(url), options)
        importer.plan()
        with pytest.raises(Interrupted):
            importer.run(interrupt)
        assert old_store.reads.latest_height() == head

    assert import_all(old_store, upstreams_at(url), options=options) == (1, RECENT - 1)
    old_store.verify()


def test_pruned_heights_are_named(
    recent_chain: SampleChain, serve_node: Serve, old_store: SQLiteBackend
) -> None:
    """The error names both cures: a new store above the heights, or a node that has them."""
    lacking = serve_node(pruned(node_of(recent_chain, RECENT), 33, 33))
    options = trusting(recent_chain, 60)

    with pytest.raises(ConfigurationError, match="pruned blocks 11 to 32") as raised:
        import_all(old_store, upstreams_at(lacking), options=options)

    assert "noderpc start --upstream URL --database NEW" in str(raised.value)
    assert old_store.reads.latest_height() == HEAD
    archive = serve_node(node_of(recent_chain, RECENT))
    import_all(old_store, upstreams_at(lacking, archive), options=options)
    assert old_store.reads.latest_height() == RECENT - 1


@pytest.mark.parametrize("period", [TRUST.period, int(WEEKS) * SECOND])
def test_a_companion_names_pruned_heights(
    period: int, recent_chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """This holds for a young head, too; stored blocks are served."""
    first = companion(serve_node(node_of(recent_chain, HEAD)))
    first.follow()
    reaches(first, HEAD)
    first.close()
    forget_newest(first)
    lacking = serve_node(pruned(node_of(recent_chain, RECENT), 33, 33))
    trust = f"60:{hash_of(recent_chain, 60).hex()}"

    followed = companion(lacking, trust=trust, trust_period=period / SECOND)
    followed.follow()

    until(lambda: "pruned blocks 11 to 32" in reason(followed), "the reason")
    assert followed.reads.latest_height() == HEAD
    with pytest.raises(HeightNotAvailable):
        followed.reads.block(HEAD + 1)


@pytest.fixture
def forked_store(
    serve_node: Serve, old_store: SQLiteBackend, tmp_path: Path
) -> Iterator[SQLiteBackend]:
    """A store of a fork, whose head is old."""
    store = SQLiteBackend(tmp_path / "fork.db")
    fork = serve_node(node_of(make_recent_chain(2), 20))
    import_all(store, upstreams_at(fork), 1, HEAD)
    yield store
    store.close()


@pytest.mark.parametrize("lowest", [1, HEAD + 1])
def test_a_trusted_header_of_another_chain_is_refused(
    lowest: int, recent_chain: SampleChain, serve_node: Serve, forked_store: SQLiteBackend
) -> None:
    """The error has both hashes and the cure, whether or not the nodes have the head's
    block."""
    url = serve_node(pruned(node_of(recent_chain, RECENT), lowest, lowest))

    with pytest.raises(NodeRPCError, match="another --database") as raised:
        import_all(forked_store, upstreams_at(url), options=trusting(recent_chain, 60))

    assert forked_store.reads.hash_at(HEAD).hex().upper() in str(raised.value)
    assert hash_of(recent_chain, HEAD).hex().upper() in str(raised.value)
    assert forked_store.reads.latest_height() == HEAD


def _wrong_hash(chain: SampleChain) -> TrustOptions:
    return TrustOptions(60, bytes(32))


def _below_the_head(chain: SampleChain) -> TrustOptions:
    return TrustOptions(HEAD - 5, hash_of(chain, HEAD - 5))


def _too_old(chain: SampleChain) -> TrustOptions:
    return TrustOptions(OLD - 2, hash_of(chain, OLD - 2))


def _above_the_nodes(chain: SampleChain) -> TrustOptions:
    return TrustOptions(RECENT + 1, bytes(32))


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (_wrong_hash, f"not the trusted one, {bytes(32).hex()}: .* --trust has a wrong hash"),
        (_below_the_head, "--trust 5 is not above the head: pass --trust HEIGHT:HASH"),
        (_too_old, "--trust 38: expected a header that is at most 14 days.* of 2023-11-14T"),
        (_above_the_nodes, f"--trust 81: expected .* the nodes' latest block {RECENT}"),
    ],
)
def test_trusted_headers_that_revive_nothing(
    of: Callable[[SampleChain], TrustOptions],
    said: str,
    recent_chain: SampleChain,
    url: str,
    old_store: SQLiteBackend,
) -> None:
    """Each error says what was given, and what to do."""
    with pytest.raises(NodeRPCError, match=said):
        import_all(old_store, upstreams_at(url), options=FetchOptions(of(recent_chain)))
    assert old_store.reads.latest_height() == HEAD


def _other_time(block: Block) -> Block:
    if block.header.height != 30:
        return block
    return replace(block, header=replace(block.header, time=block.header.time + 1))


class HeaderLiar(Liar):
    """A node that also serves wrong ranges of headers."""

    def block_metas(self, low: int, high: int) -> tuple[BlockMeta, ...]:
        return tuple(self.reads.block_meta(height) for height in range(high, low - 1, -1))


def test_a_node_that_lies_about_a_header_is_refused(
    recent_chain: SampleChain, url: str, serve_node: Serve, old_store: SQLiteBackend
) -> None:
    """An honest node's headers link the head to the trusted header."""
    liar = HeaderLiar(node_of(recent_chain, RECENT))
    liar.of_block, liar.is_consistent = _other_time, True
    upstreams = upstreams_at(serve_node(liar), url)
    upstreams.ahead = upstreams.usable_readers()[0].name

    import_all(old_store, upstreams, options=trusting(recent_chain, 60))

    assert [*upstreams.refused] == [upstreams.ahead]
    assert old_store.verify() == RECENT - 1


def test_a_trusted_header_above_the_head_outweighs_what_nodes_show(
    recent_chain: SampleChain, serve_node: Serve, old_store: SQLiteBackend
) -> None:
    """A node without later blocks does not make the head the newest, and a forged chain that
    the old validators signed is refused."""
    options = trusting(recent_chain, 60)
    behind = upstreams_at(serve_node(node_of(recent_chain, HEAD)))
    HeadAge(old_store, behind, options.trust).note()
    shared_state.set_newest_seen(old_store, HEAD, time.time_ns())
    maker = ChainMaker((10, 7, 3))
    blocks = [*make_blocks(maker, HEAD, 1)]
    maker._now = time.time_ns() - 600 * SECOND
    blocks += make_blocks(maker, RECENT - HEAD, 2)
    forged = SampleChain(maker.genesis, maker.state, tuple(blocks))
    assert hash_of(forged, HEAD) == hash_of(recent_chain, HEAD)

    with pytest.raises(NodeRPCError, match="not the trusted one"):
        import_all(old_store, upstreams_at(serve_node(node_of(forged, RECENT))), 1, 55, options)

    assert old_store.reads.latest_height() == HEAD


def test_linked_headers_that_are_ahead_of_the_clock_wait(
    recent_chain: SampleChain, url: str, old_store: SQLiteBackend
) -> None:
    """The clock may be wrong; headers that are not ahead are stored."""
    now = recent_chain.blocks[OLD + 1].block.header.time - 60 * SECOND
    trust = replace(trusting(recent_chain, 70).trust, clock=lambda: now)

    with pytest.raises(UpstreamUnavailable, match="header 42 is 60 s ahead"):
        import_all(old_store, upstreams_at(url), 1, 75, FetchOptions(trust))

    assert old_store.reads.latest_height() == OLD + 1


def test_a_young_head_needs_no_headers(
    recent_chain: SampleChain, url: str, old_store: SQLiteBackend
) -> None:
    """Signatures prove the next blocks up to the trusted header, whose hash must match."""
    import_all(old_store, upstreams_at(url), 1, 50, FetchOptions(TRUST))
    wrong = FetchOptions(TrustOptions(60, bytes(32)))
    with pytest.raises(NodeRPCError, match="not the trusted one"):
        import_all(old_store, upstreams_at(url), options=wrong)
    assert old_store.reads.latest_height() == 50
