"""Tests of a companion that serves another dialect than its node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from flask_noderpc.companion.rounds import translate_round
from flask_noderpc.jsoncodec import Raw
from flask_noderpc.testing.node import Node, app_for, run_node, serve
from tests.helpers.until import until

from .conftest import Companion
from .test_follow import grown, reaches
from .test_import import get, paths

# Dialects of the node and of the companion.
PAIRS = [
    ("comet-0.40", "comet-0.34"),
    ("comet-1.0", "comet-0.34"),
    ("comet-0.34", "comet-1.0"),
    ("comet-0.37", "comet-0.40"),
    ("comet-0.38", "comet-0.37"),
    ("comet-1.0", "comet-0.38"),
    ("comet-0.39", "document"),
]


@dataclass(frozen=True)
class Pair:
    """A node, its companion, and a node of the companion's dialect."""

    node: Node
    own: str
    reference: str


@contextmanager
def pair(companion: Companion, source: str, target: str) -> Iterator[Pair]:
    """Run all three with one chain."""
    with run_node(dialect=source) as node:
        followed = companion(grown(node, 12).url)
        followed.follow()
        reaches(followed, 12)
        with (
            serve(app_for(followed, dialect=target)) as own,
            serve(app_for(node.chain, dialect=target)) as reference,
        ):
            yield Pair(node, own, reference)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_reads_are_those_of_a_node_of_the_dialect(
    source: str, target: str, companion: Companion
) -> None:
    """Stored and forwarded responses are equal, byte for byte."""
    with pair(companion, source, target) as made:
        made.node.chain.mempool.submit(b"waits=1")
        forwarded = [
            '/abci_query?data="key2"&prove=true',
            "/abci_query?data=0x6b657932&height=5",
            "/abci_info",
            "/unconfirmed_txs?limit=1",
            "/num_unconfirmed_txs",
            '/check_tx?tx="other=1"',
            '/check_tx?tx="none"',
        ]
        if target != "document":
            # A companion has no consensus rounds.
            forwarded += ["/consensus_state", "/dump_consensus_state"]
        for path in (*paths(made.node.chain), *forwarded):
            assert get(made.own + path) == get(made.reference + path), path


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_broadcasts_are_answered_as_by_a_node_of_the_dialect(
    source: str, target: str, companion: Companion
) -> None:
    """If the check fails, 1.0 answers with an error, and the other dialects with a result."""
    with pair(companion, source, target) as made:
        failed = [f'/broadcast_tx_{way}?tx="none"' for way in ("sync", "async", "commit")]
        for path in failed:
            assert get(made.own + path) == get(made.reference + path), path
        is_error = bool(json.loads(get(made.own + failed[0])).get("error"))
        assert is_error == (target == "comet-1.0")
        # The transaction is pending, or already in the cache.
        assert json.loads(get(made.own + '/broadcast_tx_sync?tx="a=1"'))["result"]["code"] in (
            0,
            "0",
        )
        until(lambda: made.node.chain.mempool.pending_count().total == 1, "the transaction")
        again = '/broadcast_tx_sync?tx="a=1"'
        assert get(made.own + again) == get(made.reference + again)


def test_a_live_round_in_the_words_of_another_version() -> None:
    """The round has votes, and a proposal that was received."""
    vote = "Vote{0:5C1F1A2B3C4D 87/00/SIGNED_MSG_TYPE_PREVOTE(Prevote) 8B01F86F 6D9DAA"
    old = vote.replace("8B01F86F", "8B01F86FAA00").replace("6D9DAA", "6D9DAA010203")
    new = old + " 0A0B0C0D0E0F"
    absent = "nil-Vote"
    at = " @ 2024-01-02T03:04:05.678Z}"

    def shown(vote: str, received: str = "") -> Raw:
        votes = f'"votes":[{{"prevotes":["{absent}","{vote}{at}"]}}]'
        block = f'"proposal":{{"round":0}},{received}"proposal_block":null'
        return Raw(f"{{{block},{votes}}}".encode())

    received = '"proposal_receive_time":"2024-01-02T03:04:05Z",'
    never = '"proposal_receive_time":"0001-01-01T00:00:00Z",'
    without = old + " 000000000000"
    for source, given, target, expected in (
        ("comet-0.34", shown(old), "comet-0.37", shown(old)),
        ("comet-0.40", shown(new), "comet-0.34", shown(old)),
        ("comet-0.37", shown(old), "comet-0.38", shown(without)),
        ("comet-1.0", shown(new, received), "comet-0.38", shown(new)),
        ("comet-1.0", shown(new, received), "comet-0.37", shown(old)),
        ("comet-0.34", shown(old), "comet-1.0", shown(without, never)),
        ("comet-1.0", shown(new, received), "comet-1.0", shown(new, received)),
    ):
        assert bytes(translate_round(given, source, target)) == bytes(expected), (
            source,
            target,
        )
