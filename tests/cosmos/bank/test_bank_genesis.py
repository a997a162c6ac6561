"""Tests of the bank's genesis state: errors name what is wrong, and validators of gentxs are
refused."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.cosmos.bank import dev
from flask_noderpc.cosmos.bank.accounts import module_address
from flask_noderpc.cosmos.bank.application import Bank
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.domain.genesis import Genesis, GenesisValidator
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.testing.chains import DictState

from ...chain.fixtures import GENESIS_TIME, key
from .test_bank import run_block

Json = Any
Path = tuple[str | int, ...]

KEY = {"@type": "/cosmos.crypto.ed25519.PubKey", "key": "A" * 43 + "="}
OWN_KEY = {**KEY, "key": b64encode(key(1).public.value).decode()}
POOLS = ("bonded_tokens_pool", "distribution")
# Beginnings of the errors for values that are valid, but do not fit others.
UNFIT = (
    "expected addresses with one prefix",
    "expected the genesis",
    "staking: expected a balance",
    "staking: expected the 1 validators",
    "distribution: expected a balance",
)


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
    pool, rewards = (bech32.encode("cosmos", module_address(name)) for name in POOLS)
    state["bank"]["balances"] += [
        {"address": pool, "coins": [{"denom": "stake", "amount": "5000000"}]},
        {"address": rewards, "coins": [{"denom": "stake", "amount": "3"}]},
    ]
    state |= modules()
    state["genutil"] = {"gen_txs": []}
    return state


def modules() -> Json:
    """Return the states of modules, as an exported state has them."""
    operator, consensus = (
        bech32.encode(f"cosmos{name}", bytes(20)) for name in ("valoper", "valcons")
    )
    delegator = bech32.encode("cosmos", bytes(20))
    time, coin = "2020-01-01T00:00:00Z", [{"denom": "stake", "amount": "1.5"}]
    pair = {"delegator_address": delegator, "validator_address": operator}
    entry = {
        "creation_height": "1",
        "completion_time": time,
        "initial_balance": "0",
        "balance": "0",
        "unbonding_id": "1",
    }
    redelegation = {
        "delegator_address": delegator,
        "validator_src_address": operator,
        "validator_dst_address": operator,
        "entries": [{"completion_time": time, "initial_balance": "1", "shares_dst": "1.0"}],
    }
    validator = {
        "operator_address": operator,
        "consensus_pubkey": OWN_KEY,
        "jailed": False,
        "status": "BOND_STATUS_BONDED",
        "tokens": "5000000",
        "delegator_shares": "5000000.0",
        "description": {"moniker": "one"},
        "unbonding_height": "0",
        "unbonding_time": "1970-01-01T00:00:00Z",
        "commission": {
            "commission_rates": {"rate": "0.1", "max_rate": "0.2"},
            "update_time": time,
        },
        "min_self_delegation": "1",
        "unbonding_ids": ["1"],
    }
    of_validator = {"validator_address": operator}
    info = {"address": consensus, "start_height": "0", "jailed_until": time}
    return {
        "staking": {
            "params": {
                "unbonding_time": "1814400s",
                "max_validators": 100,
                "max_entries": 7,
                "historical_entries": 10,
                "bond_denom": "stake",
                "min_commission_rate": "0.05",
            },
            "last_total_power": "5",
            "last_validator_powers": [{"address": operator, "power": "5"}],
            "validators": [validator],
            "delegations": [{**pair, "shares": "5000000.0"}],
            "unbonding_delegations": [{**pair, "entries": [entry]}],
            "redelegations": [redelegation],
            "pending_consensus_key_rotations": [],
            "exported": True,
        },
        "mint": {
            "minter": {"inflation": "0.13", "annual_provisions": "0"},
            "params": {
                "mint_denom": "stake",
                "inflation_rate_change": "0.13",
                "inflation_max": "0.2",
                "inflation_min": "0.07",
                "goal_bonded": "0.67",
                "blocks_per_year": "5",
                "max_supply": "1000000000000000000000",
            },
        },
        "distribution": {
            "params": {"community_tax": "0.02", "withdraw_addr_enabled": True},
            "fee_pool": {"community_pool": coin},
            "delegator_withdraw_infos": [
                {"delegator_address": delegator, "withdraw_address": delegator}
            ],
            "previous_proposer": consensus,
            "outstanding_rewards": [{**of_validator, "outstanding_rewards": coin}],
            "validator_accumulated_commissions": [
                {**of_validator, "accumulated": {"commission": coin}}
            ],
            "validator_historical_rewards": [
                {
                    **of_validator,
                    "period": "1",
                    "rewards": {"cumulative_reward_ratio": coin, "reference_count": 2},
                }
            ],
            "validator_current_rewards": [
                {**of_validator, "rewards": {"rewards": coin, "period": "2"}}
            ],
            "delegator_starting_infos": [
                {
                    **pair,
                    "starting_info": {"previous_period": "1", "stake": "5.0", "height": "1"},
                }
            ],
            "validator_slash_events": [
                {
                    **of_validator,
                    "height": "1",
                    "period": "1",
                    "validator_slash_event": {"validator_period": "1", "fraction": "0.1"},
                }
            ],
        },
        "slashing": {
            "params": {
                "signed_blocks_window": "100",
                "min_signed_per_window": "0.5",
                "downtime_jail_duration": "600s",
                "slash_fraction_double_sign": "0.05",
                "slash_fraction_downtime": "0.01",
            },
            "signing_infos": [{"address": consensus, "validator_signing_info": info}],
            "missed_blocks": [
                {"address": consensus, "missed_blocks": [{"index": "3", "missed": True}]}
            ],
        },
        "evidence": {
            "evidence": [
                {
                    "@type": "/cosmos.evidence.v1beta1.Equivocation",
                    "height": "1",
                    "time": time,
                    "power": "1",
                    "consensus_address": consensus,
                }
            ]
        },
    }


def paths(value: Json, before: Path = ()) -> Iterator[Path]:
    """Yield the paths of all values within a value."""
    members = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else ()
    for name, each in (*members, *items):
        yield (*before, name)
        yield from paths(each, (*before, name))


def init(state: Json, *, validators: bool = True) -> tuple[Bank, DictState]:
    own = GenesisValidator(key(1).address, key(1).public, 5)
    stored = DictState()
    app = Bank(stored)
    genesis = Genesis(
        "chain",
        GENESIS_TIME,
        validators=(own,) if validators else (),
        app_state=json.dumps(state).encode(),
    )
    stored.apply(app.init_chain(genesis).changes)
    return app, stored


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
        app, stored = init(state)
    except ConfigurationError as error:
        text = str(error).removeprefix("app_state of the genesis document: ")
        assert text.startswith((str(path[0]), *UNFIT))
        assert len(text) < 600
        return
    # A chain that starts must not halt.
    for height in range(1, 5):
        run_block(app, stored, height)


def test_the_whole_state_is_taken() -> None:
    init(WHOLE)


@pytest.mark.parametrize("state", [[], "x", 5])
def test_a_state_that_is_not_an_object_is_refused(state: Json) -> None:
    with pytest.raises(ConfigurationError, match="expected an object"):
        init(state)


@pytest.mark.parametrize(
    ("tx", "text"),
    [
        ([], "json: cannot unmarshal array"),
        ({"body": {"messages": [{"@type": "/x"}]}}, "unable to resolve type URL /x"),
        ({"body": {"messages": []}}, "must contain at least one message"),
    ],
)
def test_an_invalid_gentx_is_named(tx: Json, text: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"genutil\.gen_txs\[0\]: .*{text}"):
        init({**WHOLE, "genutil": {"gen_txs": [tx]}})
