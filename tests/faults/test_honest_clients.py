"""Latency of an honest client beside attacks; ``.ci/long`` prints the figures."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ..abuse.attacks import (
    FLOODS,
    TINY_CHUNKS,
    TRAILERS,
    UNREAD_BODY,
    Attack,
    requests,
    timed_health,
    under,
    websockets,
)
from ..server.node_process import Node, started
from .processes import is_long

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(not is_long(), reason="measures: NODERPC_CAMPAIGN=long"),
]
SECONDS = 5.0
REQUESTS = {
    "trailers": TRAILERS,
    "chunks of a byte": TINY_CHUNKS,
    "a body that nobody reads": UNREAD_BODY,
}
AIM_S, WEBSOCKET_AIM_S = 0.1, 0.05


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with started(tmp_path_factory.mktemp("node")) as found:
        found.until_up()
        yield found


def p99(node: Node, name: str, *attacks: Attack) -> float:
    with under(*attacks):
        until = time.monotonic() + SECONDS
        took = sorted(timed_health(node, lambda: time.monotonic() > until))
    half, most = (took[int(share * len(took))] for share in (0.5, 0.99))
    opened = sum(attack.connections for attack in attacks)
    print(
        f"\n{name}: {len(took)} answers, half within {1000 * half:.1f} ms, 99 % within"
        f" {1000 * most:.1f} ms, the slowest {1000 * took[-1]:.0f} ms; {opened} connections"
        " of attackers"
    )
    return most


@pytest.mark.parametrize("name", REQUESTS)
def test_beside_a_request_without_end(node: Node, name: str) -> None:
    first, again = REQUESTS[name]
    assert p99(node, name, Attack(requests(node, first), again)) < AIM_S


@pytest.mark.parametrize("name", FLOODS)
def test_beside_five_websockets_that_flood(node: Node, name: str) -> None:
    first, again = FLOODS[name]
    attacks = [Attack(websockets(node, first), again) for _ in range(5)]
    assert p99(node, name, *attacks) < WEBSOCKET_AIM_S
