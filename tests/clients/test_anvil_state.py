"""Tests that states which anvil dumps are loaded here, and ours by anvil."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.protocol.secp256k1eth import to_checksum

from ..helpers.http import call
from ..helpers.until import until
from .evm_node import development_node
from .test_anvil import anvil, ask

ONE, OTHER = f"0x{'a1' * 20}", f"0x{'b2' * 20}"
# Code that stores 1 in slot 0.
CODE = "0x600160005500"
SENDER = to_checksum(DEV_KEYS[0].address)
# The contract that the second transaction creates.
CREATED = "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[str]:
    with development_node(tmp_path) as url:
        yield f"{url}/evm"


@pytest.fixture
def other() -> Iterator[str]:
    with anvil() as url:
        ask(url, "evm_setAutomine", True)
        yield url


def change(url: str) -> None:
    """Give accounts everything that an account can have, by methods and by transactions."""
    for name, *params in (
        ("anvil_setCode", ONE, CODE),
        ("anvil_setStorageAt", ONE, "0x" + "ff" * 32, "0x" + "0" * 61 + "abc"),
        ("anvil_setBalance", OTHER, "0x123"),
        ("anvil_setNonce", OTHER, "0x3"),
    ):
        call(url, name, params)
    # The init code returns the code above.
    init = "0x65600160005500600052600660" + "1af3"
    for to in ({"to": ONE, "value": "0x7"}, {"data": init}):
        tx = call(url, "eth_sendTransaction", [{"from": SENDER, "gas": "0x186a0", **to}]).result
        until(lambda tx=tx: ask(url, "eth_getTransactionReceipt", tx) is not None, "its block")  # type: ignore[misc]


def shown(url: str) -> dict[str, Any]:
    """Nonces, balances, code and storage of these accounts."""
    found = {}
    for address in (ONE, OTHER, CREATED, SENDER):
        slots = [f"0x{'00' * 32}", f"0x{'ff' * 32}"]
        found[address] = [
            ask(url, "eth_getTransactionCount", address, "latest"),
            ask(url, "eth_getBalance", address, "latest"),
            ask(url, "eth_getCode", address, "latest"),
            *(ask(url, "eth_getStorageAt", address, slot, "latest") for slot in slots),
        ]
    return found


def test_a_state_of_anvil_is_loaded_here(own: str, other: str) -> None:
    change(other)

    assert ask(own, "anvil_loadState", ask(other, "anvil_dumpState")) is True

    found = shown(own)
    assert found == shown(other)
    assert found[ONE][1:] == ["0x7", CODE, f"0x{1:064x}", f"0x{0xABC:064x}"]
    assert found[OTHER][:2] == ["0x3", "0x123"]
    assert found[CREATED][2] == CODE
    # The chain continues from the loaded state.
    change(own)
    assert ask(own, "eth_getBalance", ONE, "latest") == "0xe"


def test_a_state_of_this_server_is_loaded_by_anvil(own: str, other: str) -> None:
    change(own)

    assert ask(other, "anvil_loadState", ask(own, "anvil_dumpState")) is True

    found = shown(other)
    assert found == shown(own)
    assert found[ONE][1:] == ["0x7", CODE, f"0x{1:064x}", f"0x{0xABC:064x}"]
    change(other)
    assert ask(other, "eth_getBalance", ONE, "latest") == "0xe"
