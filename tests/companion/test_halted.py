"""Tests of chains that have halted or are archived: they are served, filled downwards, and
followed again when they continue."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flask_noderpc import SQLiteBackend
from flask_noderpc.cli import main
from flask_noderpc.companion import chunks, head_age, shared_state
from flask_noderpc.companion.beginning import FetchOptions
from flask_noderpc.companion.head_age import HeadAge
from flask_noderpc.companion.trust import TrustOptions
from flask_noderpc.domain.time import SECOND
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import app_for
from tests.helpers.growing import grow
from tests.helpers.until import until

from .conftest import (
    HEIGHTS,
    OLD,
    RECENT,
    Companion,
    Serve,
    import_all,
    node_of,
    upstreams_at,
)
from .forked import Change, forked_node
from .test_follow import reaches, reason
from .test_revival import WEEKS, forget_newest, hash_of

HALTED = 60
DATE = "2023-11-14T22:14:19Z"


@pytest.mark.parametrize("head_delay", [0, 1])
@pytest.mark.parametrize("trusted", [0, HALTED])
def test_a_halted_chain_is_served_and_followed_when_it_goes_on(
    trusted: int,
    head_delay: int,
    chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The newest header is accepted if it was seen in time, or if the operator names it."""
    caplog.set_level(logging.WARNING)
    node = node_of(chain, HALTED)
    given: dict[str, Any] = {"trust_period": WEEKS, "head_delay": head_delay}
    if trusted:
        given["trust"] = f"{HALTED}:{hash_of(chain, HALTED).hex()}"
    followed = companion(serve_node(node), **given)
    followed.follow()
    reaches(followed, HALTED - head_delay)

    client = app_for(followed, dialect="comet-0.38").test_client()
    said = f"the chain looks halted since {DATE[:17]}"
    until(lambda: said in caplog.text, said)
    until(lambda: said in client.get("/readyz").text, said)
    assert client.get("/readyz").status_code == 200
    assert "is trusted without a proof" in caplog.text or trusted
    for height in (HALTED + 1, HALTED + 5):
        grow(node, *chain.blocks[node.reads.latest_height() : height])
        reaches(followed, height - head_delay)
    assert "new blocks are not stored" not in caplog.text
    assert followed.store.verify() == HALTED + 5 - head_delay


def test_a_chain_that_halts_while_it_is_followed_goes_on_by_itself(
    recent_chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The chain continues after more than the trusting period, in which no node had a newer
    block; this includes a process that was started in between. The next block has a much later
    time."""
    monkeypatch.setattr(head_age, "_NOTE_EACH_S", 0.0)
    node = node_of(recent_chain, OLD)
    halted_at = recent_chain.blocks[OLD - 1].block.header.time
    now = [halted_at]
    given: dict[str, Any] = {
        "trust_period": WEEKS,
        "trust": f"5:{hash_of(recent_chain, 5).hex()}",
        "clock": lambda: now[0],
    }
    url = serve_node(node)
    followed = companion(url, **given)
    followed.follow()
    reaches(followed, OLD)
    for _ in range(4):
        now[0] += int(WEEKS / 2) * SECOND
        until(_is_seen_at(followed.store, now[0]), "the head is seen")
    followed.close()

    now[0] = recent_chain.blocks[-1].block.header.time
    shared_state.set_newest_seen(followed.store, OLD, now[0] - 5 * SECOND)
    again = companion(url, **given)
    again.follow()
    grow(node, *recent_chain.blocks[OLD:])

    reaches(again, RECENT)
    assert not reason(again)


def _is_seen_at(store: Any, time: int) -> Any:
    def is_seen() -> bool:
        found = shared_state.newest_sighting(store)
        return found is not None and found.at == time

    return is_seen


def test_a_head_that_was_not_watched_needs_a_trusted_header(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """The operator may name the head itself, while no node has a newer block."""
    now = [chain.blocks[HALTED - 1].block.header.time]
    url = serve_node(node_of(chain, HALTED))
    given: dict[str, Any] = {"trust_period": WEEKS, "clock": lambda: now[0]}
    trust = [f"{height}:{hash_of(chain, height).hex()}" for height in (50, HALTED)]
    first = companion(url, trust=trust[0], **given)
    first.follow()
    reaches(first, HALTED)
    first.close()
    now[0] += int(3 * WEEKS) * SECOND

    node = node_of(chain, HALTED)
    url = serve_node(node)
    refused = companion(url, trust=trust[0], **given)
    refused.follow()
    named = companion(url, trust=trust[1], **given)
    until(lambda: refused.store.lease_state().owner != "", "the first follower")
    grow(node, chain.blocks[HALTED])
    until(lambda: "--trust 50 is not above the head" in reason(refused), "the reason")
    refused.close()

    node = node_of(chain, HALTED)
    named = companion(serve_node(node), trust=trust[1], **given)
    named.follow()
    until(_is_seen_at(named.store, now[0]), "the head is seen")
    grow(node, chain.blocks[HALTED])
    reaches(named, HALTED + 1)
    assert not reason(named)


def test_a_head_that_is_too_old_does_not_hold_the_history(
    recent_chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hashes prove the history, however old the head is."""
    monkeypatch.setattr(chunks, "CHUNK", 1)
    node = node_of(recent_chain, OLD)
    url = serve_node(node)
    first = companion(url, backfill_from=OLD - 1)
    first.follow()
    reaches(first, OLD, OLD - 1)
    first.close()
    forget_newest(first)
    grow(node, *recent_chain.blocks[OLD:])

    filled = companion(url, trust_period=WEEKS)
    filled.follow()

    until(lambda: "pass --trust HEIGHT:HASH of a newer header" in reason(filled), "the reason")
    reaches(filled, OLD, 1)
    assert filled.reads.latest_height() == OLD


def test_the_command_imports_an_archived_chain(
    chain: SampleChain, serve_node: Serve, tmp_path: Path
) -> None:
    """The second import goes upwards to the last block, with the header that the error
    names."""
    command = ["import", serve_node(node_of(chain)), "--database", str(tmp_path / "copy.db")]
    newest = f"{HEIGHTS}:{hash_of(chain, HEIGHTS).hex().upper()}"

    first = CliRunner().invoke(main, [*command, "--to", "40"])
    refused = CliRunner().invoke(main, [*command, "--to", str(HEIGHTS)])
    done = CliRunner().invoke(main, [*command, "--to", str(HEIGHTS), "--trust", newest])

    assert first.exit_code == 0, first.output
    assert "has blocks 1 to 40 of sample-chain" in first.output
    assert refused.exit_code == 78
    assert f"looks halted, and its newest header is, according to the nodes, {newest} of" in (
        refused.output
    )
    assert done.exit_code == 0, done.output
    assert f"has blocks 1 to {HEIGHTS} of sample-chain" in done.output


def _catches_up(result: Any) -> None:
    result["sync_info"]["catching_up"] = True


@pytest.mark.parametrize("is_catching_up", [False, True])
def test_old_times_of_nodes_do_not_make_an_old_head_young(
    is_catching_up: bool, chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """Former validators can sign blocks with old times, so the head stays untrusted; the
    history is filled."""
    url = serve_node(node_of(chain, HALTED))
    first = companion(url, backfill_from=HALTED - 1)
    first.follow()
    reaches(first, HALTED, HALTED - 1)
    first.close()
    forget_newest(first)
    changes: dict[str, Change] = {"status": _catches_up} if is_catching_up else {}
    with forked_node(node_of(chain), "comet-0.38", changes) as later:
        followed = companion(later, trust_period=WEEKS)
        followed.follow()

        until(lambda: "pass --trust HEIGHT:HASH of a newer header" in reason(followed), "it")
        said = f"looks halted, and its newest header is, according to the nodes, {HEIGHTS}:"
        assert (said in reason(followed)) is not is_catching_up
        reaches(followed, HALTED, 1)
        assert followed.reads.latest_height() == HALTED
        followed.close()


def test_an_old_head_that_all_nodes_show_stays_old(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """Only the operator can make the head trusted."""
    upstreams = upstreams_at(serve_node(node_of(chain, HALTED)))
    import_all(store, upstreams, 1, HALTED)
    shared_state.set_newest_seen(store, 0, 0)
    period = int(WEEKS) * SECOND
    named = TrustOptions(HALTED, hash_of(chain, HALTED), period)
    for trust, is_too_old in ((TrustOptions(period=period), True), (named, False)):
        age = HeadAge(store, upstreams, trust)
        age.note()
        assert age.is_too_old(age.head()) is is_too_old


@pytest.mark.parametrize("other", ["honest", "catching up", "down"])
def test_all_nodes_have_to_show_that_a_chain_has_halted(
    other: str, chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """A node that is down may have a newer block, and one that is catching up proves
    nothing."""
    url = serve_node(node_of(chain, HALTED))
    import_all(store, upstreams_at(url), 1, HALTED)
    shared_state.set_newest_seen(store, 0, 0)
    now = chain.blocks[HALTED - 1].block.header.time + 3600 * SECOND
    trust = TrustOptions(period=int(WEEKS) * SECOND, clock=lambda: now)
    changes: dict[str, Change] = {"status": _catches_up} if other == "catching up" else {}
    with forked_node(node_of(chain, HALTED), "comet-0.38", changes) as second:
        urls = [url, "http://127.0.0.1:1" if other == "down" else second]
        HeadAge(store, upstreams_at(*urls), trust).note()
    found = shared_state.newest_sighting(store)
    assert found is not None
    assert found.at == (now if other == "honest" else 0)


def test_a_time_that_is_yet_to_come_does_not_count(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The clock was ahead when the time was recorded, and would otherwise make every next block
    trusted."""
    upstreams = upstreams_at(serve_node(node_of(chain)))
    import_all(store, upstreams, 1, HALTED)
    now = chain.blocks[-1].block.header.time + 10**6 * 3600 * SECOND
    shared_state.set_newest_seen(store, HALTED, now + 3600 * SECOND)
    trust = TrustOptions(period=int(WEEKS) * SECOND, clock=lambda: now)
    with pytest.raises(ConfigurationError, match="pass --trust HEIGHT:HASH"):
        import_all(store, upstreams, options=FetchOptions(trust))
    assert store.reads.latest_height() == HALTED


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("head_delay", [0, 1, 2, 3])
def test_the_first_block_after_a_long_halt_may_be_trusted(
    head_delay: int,
    is_new: bool,
    recent_chain: SampleChain,
    serve_node: Serve,
    companion: Companion,
) -> None:
    """The block's time is before the halt, as the votes for the previous block are. The next
    blocks follow at once, and a process that is started later accepts the same ``--trust``."""
    first = OLD + 1
    node = node_of(recent_chain, OLD + is_new)
    url = serve_node(node)
    given: dict[str, Any] = {"head_delay": head_delay}
    if not is_new:
        before = companion(url, **given)
        before.follow()
        reaches(before, OLD - head_delay)
        before.close()
        forget_newest(before)
        grow(node, recent_chain.blocks[OLD])

    given |= {"trust_period": WEEKS, "trust": f"{first}:{hash_of(recent_chain, first).hex()}"}
    followed = companion(url, **given)
    followed.follow()
    until(lambda: _newest_seen(followed.store) == first, "the trusted header is the newest")
    for height in range(first, first + 5):
        grow(node, *recent_chain.blocks[node.reads.latest_height() : height])
        reaches(followed, height - head_delay)
        if height == first + 1:
            followed.close()
            followed = companion(url, **given)
            followed.follow()
    assert not reason(followed)
    assert followed.store.verify() == first + 4 - head_delay


def _newest_seen(store: Any) -> int:
    found = shared_state.newest_sighting(store)
    return found.height if found else 0
