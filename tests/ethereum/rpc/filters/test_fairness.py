"""Tests that the limit of filters is divided fairly among clients."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.websocket import WebSocketClient

from ..transports import posting
from .fixtures import MINUTE, NOT_FOUND, Ask, Time, asking, data, opened

CAP = 6
HOG, GUEST = "10.0.0.1", "10.0.0.2"


def client_at(chain: EmbeddedChain, address: str) -> Ask:
    return asking(chain, address, evm_filter_cap=CAP)


def made(answers: list[Any]) -> list[str]:
    """Return the IDs among the answers; check that all other answers are the error for too many
    filters."""
    for answer in answers:
        if not isinstance(answer, str):
            assert answer["code"] == -32000
            assert answer["message"].startswith(f"{CAP} filters exist already, ")
            assert "raise NODERPC_EVM_FILTER_CAP" in answer["message"]
    return [answer for answer in answers if isinstance(answer, str)]


def test_a_flood_of_filters_does_not_slow_other_clients(chain: EmbeddedChain) -> None:
    say = posting(app_for(chain, json_rpc_enable=True, evm_filter_cap=CAP), HOG)
    call = {"jsonrpc": "2.0", "method": "eth_newFilter", "params": [{}]}

    def flood() -> list[Any]:
        answers: list[Any] = []
        for _ in range(10):
            replies = json.loads(say(json.dumps([{**call, "id": own} for own in range(100)])))
            answers += [reply.get("result", reply.get("error")) for reply in replies]
        return answers

    assert len(made(flood())) == CAP
    guest = client_at(chain, GUEST)
    own = guest("newBlockFilter")
    assert made(flood()) == []
    height = chain.produce()

    assert guest("getFilterChanges", own) == [data(chain.reads.block(height)[0].hash)]


def test_the_client_with_the_most_filters_is_evicted_first(chain: EmbeddedChain) -> None:
    hog, guest = client_at(chain, HOG), client_at(chain, GUEST)
    taken = [hog("newBlockFilter") for _ in range(CAP)]

    assert len(made([guest("newFilter", {}) for _ in range(CAP)])) == CAP // 2
    assert made([hog("newBlockFilter")]) == []
    polled = [hog("getFilterChanges", own) for own in taken]
    assert polled == [NOT_FOUND] * (CAP // 2) + [[]] * (CAP // 2)


def test_clients_with_one_filter_each_are_not_evicted(chain: EmbeddedChain) -> None:
    clients = [client_at(chain, f"10.0.1.{number}") for number in range(CAP)]
    own = [ask("newBlockFilter") for ask in clients]

    refused = client_at(chain, GUEST)("newBlockFilter")
    assert refused["message"].startswith(
        f"{CAP} filters exist already, which is the maximum, 0 of"
    )
    assert [clients[0]("getFilterChanges", each) for each in own] == [[]] * CAP


def test_the_least_recently_polled_filter_is_evicted(chain: EmbeddedChain, clock: Time) -> None:
    hog = client_at(chain, HOG)
    own = [hog("newBlockFilter") for _ in range(CAP)]
    for each in (own[0], *own[2:]):
        clock.now += MINUTE * 2 // 3
        assert hog("getFilterChanges", each) == []

    client_at(chain, GUEST)("newBlockFilter")

    assert hog("getFilterChanges", own[1]) == NOT_FOUND
    assert hog("getFilterChanges", own[0]) == []


def test_it_is_shared_out_among_clients_of_all_workers(tmp_path: Path, clock: Time) -> None:
    with (
        closing(opened(tmp_path, EmbeddedChain, clock)) as one,
        closing(opened(tmp_path, EmbeddedChain, clock)) as other,
    ):
        hogs = [client_at(worker, HOG) for worker in (one, other)]
        assert len(made([ask("newBlockFilter") for ask in hogs * CAP])) == CAP
        assert len(made([client_at(other, GUEST)("newBlockFilter")])) == 1
        assert made([ask("newBlockFilter") for ask in hogs]) == []


def test_pages_of_other_sites_take_nothing_from_the_programs_beside_them(
    chain: EmbeddedChain,
) -> None:
    app = app_for(chain, json_rpc_enable=True, evm_filter_cap=CAP)
    headers = {"Origin": "https://evil.example"}
    with (
        serve(app) as url,
        closing(WebSocketClient(url, path="/evm/ws", headers=headers)) as page,
        closing(WebSocketClient(url, path="/evm/ws")) as program,
    ):

        def asked(client: WebSocketClient) -> Any:
            reply = client.asked("eth_newBlockFilter")
            return reply.get("result", reply.get("error"))

        assert len(made([asked(page) for _ in range(2 * CAP)])) == CAP
        assert len(made([asked(program)])) == 1
        # The program's own connection and a POST from the same address are the same client.
        assert len(made([asking(chain, evm_filter_cap=CAP)("newBlockFilter")])) == 1
        assert len(made([asked(program) for _ in range(CAP)])) == CAP // 2 - 2


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("unix", "unix", True),
    ],
)
def test_a_client_is_an_ipv4_address_or_an_ipv6_network(
    chain: EmbeddedChain, one: str, other: str, is_same: bool
) -> None:
    hog = client_at(chain, one)
    assert len(made([hog("newBlockFilter") for _ in range(CAP)])) == CAP

    assert len(made([client_at(chain, other)("newBlockFilter")])) == (0 if is_same else 1)


def test_a_filter_may_be_polled_by_another_address(chain: EmbeddedChain) -> None:
    own = client_at(chain, HOG)("newBlockFilter")
    guest = client_at(chain, GUEST)
    chain.produce()

    assert len(guest("getFilterChanges", own)) == 1
    assert client_at(chain, HOG)("getFilterChanges", own) == []
    assert guest("uninstallFilter", own) is True
