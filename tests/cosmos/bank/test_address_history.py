"""Tests of ``txs_by_address``: the transactions of an account, page by page."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from flask_noderpc.cosmos.testing import BankNode

from .bank_txs import ALICE, BOB
from .test_bank_http import call, sent


def asked(node: BankNode, **params: str) -> Any:
    """Return the whole response to a GET, with the parameters quoted as CometBFT wants."""
    query = urlencode({name: f'"{value}"' for name, value in params.items()})
    try:
        with urlopen(f"{node.url}/txs_by_address?{query}") as response:
            return json.load(response)
    except HTTPError as error:
        return json.load(error)


def test_an_account_has_what_it_sent_and_received(noderpc_bank: BankNode) -> None:
    with noderpc_bank.snapshot():
        hashes = [sent(noderpc_bank, sequence=number)["hash"] for number in range(5)]
        for account in (ALICE, BOB):
            for order, expected in (("asc", hashes), ("desc", hashes[::-1])):
                found: list[Any] = []
                cursor = ""
                while True:
                    page = asked(
                        noderpc_bank, address=account, order_by=order, limit="2", cursor=cursor
                    )["result"]
                    found += page["txs"]
                    cursor = page["cursor"]
                    if not cursor:
                        break
                    assert len(page["txs"]) == 2
                assert [tx["hash"] for tx in found] == expected
                assert page["missing"] == []
        newest = call(noderpc_bank, "tx_search", query=f"tx.hash='{hashes[-1]}'")["result"]
        assert found[0] == newest["txs"][0]
        height = found[2]["height"]
        one = asked(noderpc_bank, address=BOB, min_height=height, max_height=height)["result"]
        assert [tx["hash"] for tx in one["txs"]] == [hashes[2]]
        assert (one["min_height"], one["max_height"]) == (height, height)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"address": "0x12"}, "address: expected a bech32 address, got '0x12'"),
        ({"address": ALICE, "limit": "0"}, "limit: expected a number from 1 to 100, got 0"),
        ({"address": ALICE, "limit": "101"}, "limit: expected a number from 1 to 100, got 101"),
        ({"address": ALICE, "order_by": "up"}, "order_by: expected asc or desc, got 'up'"),
        ({"address": ALICE, "cursor": "1"}, "cursor: expected the cursor of an earlier page"),
    ],
)
def test_wrong_parameters_are_refused(
    noderpc_bank: BankNode, params: dict[str, str], text: str
) -> None:
    error = asked(noderpc_bank, **params)["error"]
    assert text in error["message"] + str(error.get("data"))
