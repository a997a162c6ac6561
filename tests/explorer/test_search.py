"""Tests of the search box, for everything that a text can name, and for event queries."""

from __future__ import annotations

from hashlib import sha256

import pytest

from flask_noderpc.explorer import accounts, history

from .conftest import MakeSite, Site
from .html import page


@pytest.fixture
def grown(site: Site) -> Site:
    site.grow(b"name=satoshi", b"other=1")
    site.grow(b"name=hal")
    return site


def found_at(site: Site, text: str) -> str:
    response = site.client.get("/explorer/search", query_string={"q": text})
    assert response.status_code == 302, response.text
    return response.location.removeprefix("/explorer")


def test_a_height_a_hash_and_a_key_lead_to_their_pages(grown: Site) -> None:
    block_hash, tx_hash = grown.chain.reads.hash_at(2).hex(), sha256(b"name=hal").hexdigest()

    assert found_at(grown, " 2 ") == "/block/2"
    assert found_at(grown, "0x" + block_hash.upper()) == "/block/2"
    assert found_at(grown, tx_hash) == f"/tx/{tx_hash}"
    assert found_at(grown, "name") == "/key?data=name"


def test_addresses_lead_to_accounts_and_validators(grown: Site) -> None:
    bech32 = "cosmos1" + "q" * 38
    ethereum = "0x" + "aB" * 20
    validator = grown.chain.reads.validators(1).validators[0].address.hex()

    assert found_at(grown, bech32) == f"/account/{bech32}"
    assert found_at(grown, ethereum) == f"/account/{ethereum}"
    assert found_at(grown, validator) == f"/validator/{validator.upper()}"


def test_an_event_query_finds_transactions_and_blocks(grown: Site) -> None:
    query = "app.key = 'name'"

    txs = page(grown.client, f"/search?q={query}")
    blocks = page(grown.client, "/search?q=block.height > 0&of=blocks")

    assert "2 found by" in txs.text
    assert txs.text.index("name=hal") < txs.text.index("name=satoshi")
    assert "2 found by" in blocks.text
    assert {"/explorer/block/2", "/explorer/block/1"} <= {*blocks.links}


def test_the_only_hit_of_a_query_is_shown_at_once(grown: Site) -> None:
    tx_hash = sha256(b"name=hal").hexdigest().upper()

    assert found_at(grown, "app.key = 'hal'") == f"/tx/{tx_hash}"
    blocks = grown.client.get("/explorer/search?q=block.height > 1&of=blocks")
    assert blocks.location == "/explorer/block/2"


def test_results_are_paged(grown: Site) -> None:
    grown.grow(*(b"k%d=v" % number for number in range(30)))

    first = page(grown.client, "/search?q=tx.height = 3")
    second = page(grown.client, "/search?q=tx.height = 3&page=2")

    assert "30 found by" in first.text
    assert (first.text.count("=v"), second.text.count("=v")) == (25, 5)
    assert any("page=2" in link for link in first.links)


def test_an_account_shows_what_events_say_of_it(grown: Site) -> None:
    found = page(grown.client, "/account/cosmos1" + "q" * 38)

    assert found.text.count("No transactions found.") == 1


def test_a_busy_account_shows_its_latest_transactions(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The limit allows two transactions with their events, but not five.
    site = make_site(max_response_bytes=2_000)
    monkeypatch.setattr(history, "RECENT", 2)
    monkeypatch.setattr(accounts, "_KEYS", {accounts.BECH32: ("app.key",)})
    address = "cosmos1" + "q" * 38
    for number in range(5):
        site.grow(f"{address}={number}{'x' * 200}".encode())

    found = page(site.client, f"/account/{address}")

    assert "In the latest 2 blocks" in found.text
    assert f"{address}=4" in found.text
    assert f"{address}=1" not in found.text


def test_nothing_asked_for_explains_what_can_be(grown: Site) -> None:
    assert "event query" in page(grown.client, "/search").text
    assert page(grown.client, "/search?q=" + "x" * 600, 400)
