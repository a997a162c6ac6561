"""Tests of the bank's genesis state: errors name what is wrong, and validators of gentxs are
refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.cosmos.bank import dev
from flask_noderpc.cosmos.bank.application import Bank
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.domain.genesis import Genesis, GenesisValidator
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.testing.chains import DictState

from ...chain.fixtures import GENESIS_TIME, key

Json = Any
Path = tuple[str | int, ...]

KEY = {"@type": "/cosmos.crypto.ed25519.PubKey", "key": "A" * 43 + "="}


def whole_state() -> Json:
    """Return a state that has every member that is read."""
    state = json.loads(dev.app_state())
    multisig = {
        "@type": "/cosmos.crypto.multisig.LegacyAminoPubKey",
        "threshold": 1,
        "public_keys": [KEY],
    }
    state["auth"]["accounts"] = state["auth"]["accounts"][:2]
    first = state["auth"]["accounts"][0]
    first["pub_key"] = multisig
    state["auth"]["accounts"].append(
        {
            "@type": "/cosmos.auth.v1beta1.ModuleAccount",
            "base_account": {**first, "address": bech32.encode("cosmos", bytes(20))},
            "name": "mint",
            "permissions": ["minter"],
        }
    )
    state["bank"]["balances"] = state["bank"]["balances"][:2]
    state["bank"]["supply"] = []
    state["bank"]["send_enabled"] = [{"denom": "stake", "enabled": True}]
    unit = {"denom": "stake", "exponent": 0, "aliases": ["s"]}
    state["bank"]["denom_metadata"] = [
        {"base": "stake", "description": "text", "denom_units": [unit], "uri": "there"}
    ]
    state["staking"] = {
        "params": {
            "unbonding_time": "1814400s",
            "max_validators": 100,
            "bond_denom": "stake",
            "min_commission_rate": "0.05",
        },
        "validators": [
            {
                "operator_address": bech32.encode("cosmosvaloper", bytes(20)),
                "consensus_pubkey": KEY,
                "jailed": False,
                "status": "BOND_STATUS_BONDED",
                "tokens": "5",
                "delegator_shares": "5.0",
                "description": {"moniker": "one"},
                "unbonding_height": "0",
                "unbonding_time": "1970-01-01T00:00:00Z",
                "commission": {
                    "commission_rates": {"rate": "0.1"},
                    "update_time": "2020-01-01T00:00:00Z",
                },
                "min_self_delegation": "1",
                "unbonding_ids": ["1"],
            }
        ],
    }
    state["mint"] = {"params": {"mint_denom": "stake", "blocks_per_year": "5"}}
    state["distribution"] = {"params": {"community_tax": "0.02", "withdraw_addr_enabled": True}}
    state["genutil"] = {"gen_txs": []}
    return state


def paths(value: Json, before: Path = ()) -> Iterator[Path]:
    """Yield the paths of all values within a value."""
    members = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else ()
    for name, each in (*members, *items):
        yield (*before, name)
        yield from paths(each, (*before, name))


def init(state: Json, *, validators: bool = True) -> None:
    own = GenesisValidator(key(1).address, key(1).public, 10)
    Bank(DictState()).init_chain(
        Genesis(
            "chain",
            GENESIS_TIME,
            validators=(own,) if validators else (),
            app_state=json.dumps(state).encode(),
        )
    )


WHOLE = whole_state()
SCALARS: tuple[Json, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, 1e300, 1 << 70, "", "x", "-1", "1" * 5000, "é", "1_0"),
    *("9" * 30 + "s", "1e5", "cosmos1", "stake", [], {}, [None], [[]], [{}], {"@type": "x"}),
)


@pytest.mark.parametrize("path", list(paths(WHOLE)), ids=lambda path: ".".join(map(str, path)))
def test_a_wrong_member_is_named_or_taken(path: Path) -> None:
    for value in SCALARS:
        refused(path, value)


NAMES = ["address", "coins", "denom", "amount", "key", "type", "value"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.sampled_from(list(paths(WHOLE))), JSON)
def test_any_wrong_member_is_named_or_taken(path: Path, value: Json) -> None:
    refused(path, value)


def refused(path: Path, value: Json) -> None:
    state = json.loads(json.dumps(WHOLE))
    *before, last = path
    at = state
    for step in before:
        at = at[step]
    at[last] = value
    try:
        init(state)
    except ConfigurationError as error:
        text = str(error).removeprefix("app_state of the genesis document: ")
        assert text.startswith(
            (str(path[0]), "expected addresses with one prefix", "expected the genesis")
        )
        assert len(text) < 600


def test_the_whole_state_is_taken() -> None:
    init(WHOLE)


@pytest.mark.parametrize("state", [[], "x", 5])
def test_a_state_that_is_not_an_object_is_refused(state: Json) -> None:
    with pytest.raises(ConfigurationError, match="expected an object"):
        init(state)


def test_validators_that_only_gentxs_make_are_refused() -> None:
    state = {**WHOLE, "genutil": {"gen_txs": [{"body": {}}]}}

    with pytest.raises(
        ConfigurationError, match=r"genutil\.gen_txs: expected no gentxs, got 1"
    ):
        init(state, validators=False)

    init(state)
