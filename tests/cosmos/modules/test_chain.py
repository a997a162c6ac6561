"""Chains whose validator lost all its stake, or that an earlier version began."""

from __future__ import annotations

from flask_noderpc import jsoncodec
from flask_noderpc.cosmos.staking.faults import FAULTS

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
