"""Tests of balances and allowances of tokens that are set by hand."""

from __future__ import annotations

from typing import Any

import pytest

from .fixtures import FIRST, STRANGER, asked
from .token import TOKEN, TOKEN_ADDRESS


def word(address: str) -> str:
    return address[2:].lower().rjust(64, "0")


def read(w3: Any, selector: str, *addresses: str) -> int:
    data = selector + "".join(map(word, addresses))
    found = asked(w3, "eth_call", {"to": TOKEN_ADDRESS, "data": data}, "latest")
    return int(found["result"], 16)


@pytest.fixture(autouse=True)
def token(w3: Any) -> None:
    asked(w3, "anvil_setCode", TOKEN_ADDRESS, TOKEN)


def test_balances_of_tokens_are_set(w3: Any) -> None:
    assert asked(w3, "anvil_dealERC20", STRANGER, TOKEN_ADDRESS, hex(10**20))["result"] is None
    assert read(w3, "0x70a08231", STRANGER) == 10**20
    assert read(w3, "0x70a08231", FIRST) == 0
    asked(w3, "anvil_dealERC20", STRANGER, TOKEN_ADDRESS, "0")
    assert read(w3, "0x70a08231", STRANGER) == 0


def test_allowances_of_tokens_are_set(w3: Any) -> None:
    answer = asked(w3, "anvil_setERC20Allowance", FIRST, STRANGER, TOKEN_ADDRESS, "7")
    assert answer["result"] is None
    assert read(w3, "0xdd62ed3e", FIRST, STRANGER) == 7
    assert read(w3, "0xdd62ed3e", STRANGER, FIRST) == 0


@pytest.mark.parametrize(
    ("method", "params", "what"),
    [
        ("anvil_dealERC20", [FIRST, STRANGER, "0x1"], "balance"),
        ("anvil_setERC20Allowance", [FIRST, FIRST, STRANGER, "0x1"], "allowance"),
    ],
)
def test_contracts_that_are_no_tokens_are_refused(
    w3: Any, method: str, params: list[Any], what: str
) -> None:
    height = w3.eth.block_number
    error = asked(w3, method, *params)["error"]
    assert error == {"code": -32603, "message": f"Unable to set ERC20 {what}, no slot found"}
    assert w3.eth.block_number == height
