"""Tests of the pages and metrics of validators: power, signed and missed blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from flask_noderpc import MemoryChain, NodeRPC, explorer_bp
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.testing.chains import ChainMaker

from .html import page

BLOCKS, MISSED, WINDOW = 130, (20, 60, 129), 100


@dataclass(frozen=True)
class Chain:
    """A chain of four validators; the last one missed some blocks."""

    backend: ChainBackend
    steady: str
    sleepy: str


@pytest.fixture(scope="module")
def chain() -> Chain:
    maker = ChainMaker((10, 10, 10, 10))
    keys = list(maker.keys)
    addresses = [each.address for each in maker.head.validators.validators]
    blocks = []
    for height in range(1, BLOCKS + 1):
        asleep = height in MISSED
        maker.keys[:] = [k for k in keys if not (asleep and k.address == addresses[3])]
        blocks.append(maker.block())
    backend = ChainBackend(MemoryChain(maker.genesis, tuple(blocks), state=maker.state))
    return Chain(backend, addresses[0].hex().upper(), addresses[3].hex().upper())


def client(chain: Chain, **settings: Any) -> FlaskClient:
    app = Flask("validators")
    NodeRPC(app, backend=chain.backend, **settings)
    app.register_blueprint(explorer_bp)
    return app.test_client()


def test_the_list_has_the_share_of_signed_blocks(chain: Chain) -> None:
    found = page(client(chain), "/validators")
    # The validator missed the blocks 60 and 129 of the last 100.
    row = found.text[found.text.index(chain.sleepy) :]
    assert "98.0 % 2" in " ".join(row.split())
    assert found.text.count("100.0 % 0") == 3
    assert f"/explorer/validator/{chain.steady}" in found.links

    # At a lower height, other blocks count: those up to 61, without the ones at 20 and 60.
    assert "96.7 % 2" in page(client(chain), "/validators?height=61").text.replace("\n", " ")


def test_the_page_of_a_validator_names_the_blocks_that_it_missed(chain: Chain) -> None:
    found = page(client(chain), f"/validator/{chain.sleepy.lower()}")
    assert "98 of the last 100 blocks" in found.text
    missed = [link for link in found.links if re.fullmatch(r"/explorer/block/\d+", link)]
    assert missed[:2] == ["/explorer/block/129", "/explorer/block/60"]
    assert "10, 25.0 % of 40, number 4 of 4" in found.text
    assert "Voting power of" not in found.text
    other = page(client(chain), f"/validator/{chain.steady}")
    assert "100 of the last 100 blocks" in other.text


@pytest.mark.parametrize(
    ("address", "status", "text"),
    [
        ("ab" * 20, 404, "is in none of the validator sets"),
        ("zz", 400, "expected 40 hex digits"),
        ("é" * 40, 400, "expected 40 hex digits"),
    ],
)
def test_unknown_validators_are_refused(
    chain: Chain, address: str, status: int, text: str
) -> None:
    assert text in page(client(chain), f"/validator/{address}", status).text


def test_uptime_is_left_out_if_commits_are_denied(chain: Chain) -> None:
    def authorize(request: object, method: str) -> bool:
        return method != "commit"

    found = page(client(chain, authorize=authorize), "/validators")
    assert "Signed" not in found.text
    assert chain.sleepy in found.text


def test_a_search_for_an_address_leads_to_the_validator(chain: Chain) -> None:
    reply = client(chain).get(f"/explorer/search?q={chain.sleepy}")
    assert reply.headers["Location"] == f"/explorer/validator/{chain.sleepy}"


def test_metrics_have_power_and_missed_blocks(chain: Chain) -> None:
    text = client(chain, metrics=True).get("/metrics").get_data(True)
    labels = f'{{chain="sample-chain",validator="{chain.sleepy}"}}'
    assert f"noderpc_validator_power{labels} 10.0" in text
    assert f"noderpc_validator_missed_blocks{labels} 2.0" in text
    assert text.count("noderpc_validator_missed_blocks{") >= 4


def test_only_validators_and_commits_are_asked_for(chain: Chain) -> None:
    def authorize(request: object, method: str) -> bool:
        return method in ("validators", "commit")

    site = client(chain, authorize=authorize)
    assert "98.0 %" in page(site, "/validators").text
    assert "98 of the last 100" in page(site, f"/validator/{chain.sleepy}").text
