"""Chains where the SDK's would halt, chains of an earlier version, and modules that are
refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from flask_noderpc import jsoncodec
from flask_noderpc.cosmos.bank import BANK_HANDLERS, MODULES, Bank, Module, QueryContext
from flask_noderpc.cosmos.staking.faults import FAULTS
from flask_noderpc.errors import InvalidSetting
from flask_noderpc.testing.chains import DictState

from .test_properties import (
    OPERATORS,
    PEOPLE,
    STAKING,
    Chain,
    Sent,
    check,
    created,
    genesis,
    stake,
)

# Members of the head in stores of version 0.1.
_FIRST_MEMBERS = 8


def delegated(who: int, operator: str, amount: int) -> Sent:
    fields = {
        "delegator_address": PEOPLE[who],
        "validator_address": operator,
        "amount": stake(amount),
    }
    return Sent(who, f"{STAKING}MsgDelegate", fields)


def test_a_validator_without_tokens_takes_no_delegations() -> None:
    chain = Chain(genesis(double_sign="1"))
    chain.block(5, [created(1, 2_000_000, "0")])
    for _ in range(3):
        chain.block(5, [])
    chain.app.capabilities[FAULTS].equivocate(OPERATORS[1])
    chain.block(5, [])

    (refused,) = chain.block(5, [delegated(3, OPERATORS[1], 1_000_000)])

    assert (refused.code, refused.codespace) == (34, "staking")
    assert "invalid (zero) ex-rate" in refused.log
    found = chain.ask("staking.Validator", validator_addr=OPERATORS[1])["validator"]
    assert (found["tokens"], found["jailed"]) == ("0", True)
    check(chain)
    chain.block(501, [])
    check(chain)


def test_a_chain_that_an_earlier_version_began_has_no_modules() -> None:
    chain = Chain()
    stored = jsoncodec.unpack(chain.state[b"head"])
    chain.state[b"head"] = jsoncodec.pack(stored[:_FIRST_MEMBERS])
    send = {"from_address": PEOPLE[0], "to_address": PEOPLE[1], "amount": [stake(7)]}
    message = Sent(0, "cosmos.bank.v1beta1.MsgSend", send)

    sent, refused = chain.block(5, [message, delegated(1, OPERATORS[0], 1)])

    assert (sent.code, refused.code) == (0, 2)
    found = chain.app.query("/cosmos.staking.v1beta1.Query/Pool", b"", 0, False)
    assert found.code == 6
    assert not any(key.startswith(b"mint/") for key in chain.states[1].keys() ^ chain.states[0])


def test_a_validator_that_was_unbonded_since_its_vote_is_not_slashed() -> None:
    """A program of the SDK halts."""
    chain = Chain()
    chain.block(5, [created(1, 2_000_000, "0")])
    for _ in range(6):
        chain.block(5, [])
    # The validator may miss two of four blocks, and its vote for the last block is the third.
    chain.app.capabilities[FAULTS].miss_blocks(OPERATORS[1], 3)

    (left,) = chain.block(5, [undelegated(1, OPERATORS[1], 1_500_000)])
    chain.block(100_000, [])
    chain.block(5, [])

    assert left.code == 0
    found = chain.ask("staking.Validator", validator_addr=OPERATORS[1])["validator"]
    assert (found["status"], found["tokens"]) == ("BOND_STATUS_UNBONDED", "500000")
    check(chain)


def test_a_slash_may_remove_the_last_delegation_of_a_validator() -> None:
    """A program of the SDK halts."""
    chain = Chain(genesis(double_sign="1", unbonding="1s"))
    chain.block(5, [created(1, 2_000_000, "0"), created(2, 500_000, "0")])
    for _ in range(3):
        chain.block(5, [])
    moved = {
        "delegator_address": PEOPLE[1],
        "validator_src_address": OPERATORS[1],
        "validator_dst_address": OPERATORS[2],
        "amount": stake(400_000),
    }
    redelegate = Sent(1, f"{STAKING}MsgBeginRedelegate", moved)
    results = chain.block(0, [redelegate, undelegated(2, OPERATORS[2], 500_000)])
    assert [each.code for each in results] == [0, 0]
    chain.app.capabilities[FAULTS].equivocate(OPERATORS[1])

    chain.block(0, [])

    operators = [each["operator_address"] for each in validators_of(chain)]
    assert OPERATORS[2] not in operators
    check(chain)


def test_more_power_than_consensus_allows_is_refused_or_withheld() -> None:
    most = (1 << 60) * 10**6
    chain = Chain(genesis(each=f"{most}stake,1token", has_keys=True))

    (refused,) = chain.block(5, [delegated(1, OPERATORS[0], most - 10**6)])
    (allowed,) = chain.block(5, [delegated(1, OPERATORS[0], most // 2)])
    (other,) = chain.block(5, [created(2, most // 2 + 10**12, "0")])

    assert (refused.code, allowed.code, other.code) == (18, 0, 0)
    assert "expected a voting power of at most 1152921504606846975" in refused.log
    before = dict(chain.powers)
    for _ in range(3):
        chain.block(5, [])
    # The second validator is bonded, but does not take part in consensus yet.
    assert [each["status"] for each in validators_of(chain)] == ["BOND_STATUS_BONDED"] * 2
    assert chain.powers == before
    check(chain)


def test_no_coins_are_minted_above_the_maximum_supply() -> None:
    given = genesis(each=f"{(1 << 256) // 11}stake,20token")
    state = json.loads(given.app_state)
    state["mint"]["params"] |= {"blocks_per_year": "1", "inflation_min": "0.2"}
    chain = Chain(replace(given, app_state=json.dumps(state).encode()))

    for _ in range(3):
        chain.block(5, [])

    found = chain.ask("bank.SupplyOf", denom="stake")
    assert found["amount"]["amount"] == str((1 << 256) - 1)


def test_votes_of_a_validator_without_a_record_are_ignored() -> None:
    chain = Chain()
    del chain.state[next(key for key in chain.state if key.startswith(b"slashing/\1"))]

    chain.block(5, [])
    chain.block(5, [])

    assert chain.ask("slashing.SigningInfos")["info"] == []


def test_records_of_the_genesis_begin_at_height_0() -> None:
    chain = Chain(genesis(initial_height=1_000))

    chain.block(5, [])

    (info,) = chain.ask("slashing.SigningInfos")["info"]
    assert info["start_height"] == "0"


def undelegated(who: int, operator: str, amount: int) -> Sent:
    return replace(delegated(who, operator, amount), name=f"{STAKING}MsgUndelegate")


def validators_of(chain: Chain) -> list[dict[str, Any]]:
    return chain.list_of("staking.Validators", "validators")


class Named(Module):
    """A module with the given attributes."""

    def __init__(self, name: str, **given: Any) -> None:
        self.name = name
        for attribute, value in given.items():
            setattr(self, attribute, value)


def answer(ctx: QueryContext) -> bytes:
    return b""


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (Named(""), "expected another name than ''"),
        (Named("bank"), "expected another name than 'bank', which the application has"),
        (Named("staking"), "which module 'staking' has"),
        (Named("own", accounts={"mint": ()}), "another account than 'mint'"),
        (Named("own", accounts={"fee_collector": ()}), "which the application has"),
        (Named("own", handlers=BANK_HANDLERS), "another message than '/cosmos.bank"),
        (
            Named("own", service="cosmos.mint.v1beta1.Query", queries={"Params": answer}),
            "another query than 'cosmos.mint.v1beta1.Query/Params'",
        ),
        *(
            (Named("own", routes=row), "expected REST rows such as")
            for row in ("acme/a/b X", "get /acme/a X", "GET /acme X", "GET /acme/a(b X", "GET")
        ),
        (Named("own", routes="GET /acme/a Params"), "expected a query Params"),
        (
            Named("mint2", routes="GET /acme/a Params", queries={"Params": answer}),
            "the declared messages mint2.ParamsRequest",
        ),
    ],
)
def test_a_module_that_can_not_be_served_is_refused(module: Module, words: str) -> None:
    class Own(Bank):
        modules = (*MODULES, module)

    with pytest.raises(InvalidSetting, match=re.escape(words)):
        Own(DictState())
