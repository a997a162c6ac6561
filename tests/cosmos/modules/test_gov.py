"""Proposals on a running node, and genesis documents with proposals."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.error import HTTPError

import pytest

from flask_noderpc.backends.base.application import BlockRequest
from flask_noderpc.cosmos.bank import Bank, dev
from flask_noderpc.cosmos.bank.accounts import module_address
from flask_noderpc.cosmos.gov.state import Gov
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.cosmos.rest import reader, writer
from flask_noderpc.cosmos.rest.requests import InvalidRequest
from flask_noderpc.cosmos.testing import BankNode
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.domain.block import Commit
from flask_noderpc.domain.genesis import Genesis
from flask_noderpc.domain.validator import ValidatorSet
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.protocol.protobuf import blob, integer, string
from flask_noderpc.testing.chains import GENESIS_TIME, DictState

from ..bank.bank_txs import CHAIN_ID, any_of
from .test_faults import rest
from .test_grants import balance, message, sent
from .test_properties import PEOPLE, Chain, Sent, genesis

V1, V1BETA1 = "cosmos.gov.v1", "cosmos.gov.v1beta1"
PATH, LEGACY_PATH = "/cosmos/gov/v1/proposals", "/cosmos/gov/v1beta1/proposals"
DEPOSIT = [{"denom": "stake", "amount": "10000000"}]
TEXT = {"@type": f"/{V1BETA1}.TextProposal", "title": "Title", "description": "Text"}
AUTHORITY = bech32.encode("cosmos", module_address("gov"))


def end_votes(node: BankNode) -> None:
    """Make the block at which the votes of a development chain end."""
    node.increase_time(31)
    node.mine()


def proposed(result: ExecTxResult) -> str:
    """Return the number of a proposal whose vote began."""
    assert result.code == 0, result.log
    (number,) = (
        attribute.value.decode()
        for event in result.events
        for attribute in event.attributes
        if event.type == "submit_proposal" and attribute.key == b"voting_period_start"
    )
    return number


def propose_text(node: BankNode) -> str:
    """Propose text in v1beta1."""
    fields = {"content": TEXT, "initial_deposit": DEPOSIT, "proposer": node.accounts[1]}
    return proposed(sent(node, 1, message("MsgSubmitProposal", fields, V1BETA1)))


def accepted(node: BankNode, *messages: dict[str, Any]) -> dict[str, Any]:
    """Propose messages, let the validator accept them, and return the proposal."""
    fields = {
        "messages": list(messages),
        "initial_deposit": DEPOSIT,
        "proposer": node.accounts[1],
        "title": "Title",
        "summary": "Summary",
        "metadata": "Metadata",
    }
    number = proposed(sent(node, 1, message("MsgSubmitProposal", fields, V1)))
    vote = {"proposal_id": number, "voter": node.accounts[0], "option": "VOTE_OPTION_YES"}
    assert sent(node, 0, message("MsgVote", vote, V1)).code == 0
    end_votes(node)
    return dict(rest(node, f"{PATH}/{number}")["proposal"])


def test_an_accepted_proposal_changes_parameters(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    params = rest(node, "/cosmos/staking/v1beta1/params")["params"]
    params["unbonding_time"], params["max_validators"] = "90s", 7
    update = {
        "@type": "/cosmos.staking.v1beta1.MsgUpdateParams",
        "authority": AUTHORITY,
        "params": params,
    }
    before = balance(node, node.accounts[1])

    done = accepted(node, update)

    assert done["status"] == "PROPOSAL_STATUS_PASSED"
    assert done["messages"] == [update]
    assert done["final_tally_result"]["yes_count"] == "10000000"
    assert rest(node, "/cosmos/staking/v1beta1/params")["params"] == params
    # The deposit was returned; only the fee is gone.
    assert balance(node, node.accounts[1]) == before - 500


@pytest.mark.parametrize(
    ("seconds", "nanos", "words"),
    [
        (1 << 35, 0, " is out of range for time.Duration"),
        (-(1 << 35), 0, " is out of range for time.Duration"),
        (9_223_372_036, 854_775_808, " is out of range for time.Duration"),
        (1 << 39, 0, ": seconds out of range"),
        (0, 10**9, ": nanos out of range"),
        (1, -1, ": seconds and nanos have different signs"),
    ],
)
def test_a_duration_that_go_can_not_have_is_refused(
    noderpc_bank: BankNode, seconds: int, nanos: int, words: str
) -> None:
    duration = integer(1, seconds) + integer(2, nanos)
    value = string(1, AUTHORITY) + blob(2, blob(3, duration))
    update = any_of("/cosmos.slashing.v1beta1.MsgUpdateParams", value)
    refused = sent(noderpc_bank, 1, update)
    assert refused.code == 2
    shown = f"&durationpb.Duration{{Seconds: {seconds},\nNanos: {nanos},\n}}"
    assert refused.log.startswith(f"duration: {shown}{words}: tx parse error")


def test_a_proposal_that_fails_changes_nothing(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    to = node.accounts[5]
    pay, pay_more = (
        {
            "@type": "/cosmos.distribution.v1beta1.MsgCommunityPoolSpend",
            "authority": AUTHORITY,
            "recipient": to,
            "amount": [{"denom": "stake", "amount": amount}],
        }
        for amount in ("1", "1000000000")
    )
    fund = {"amount": DEPOSIT, "depositor": node.accounts[2]}
    package = "cosmos.distribution.v1beta1"
    assert sent(node, 2, message("MsgFundCommunityPool", fund, package)).code == 0
    before = balance(node, to)

    done = accepted(node, pay, pay_more)

    assert done["status"] == "PROPOSAL_STATUS_FAILED"
    assert "does not have sufficient coins" in done["failed_reason"]
    assert balance(node, to) == before
    assert accepted(node, pay)["status"] == "PROPOSAL_STATUS_PASSED"
    assert balance(node, to) == before + 1


def test_a_proposal_may_send_away_the_deposits_of_others(
    noderpc_bank: BankNode, caplog: pytest.LogCaptureFixture
) -> None:
    node = noderpc_bank
    small = [{"denom": "stake", "amount": "9999999"}]
    fields = {"proposer": node.accounts[2], "title": "T", "summary": "S", "metadata": "M"}
    other = message("MsgSubmitProposal", {**fields, "initial_deposit": small}, V1)
    assert sent(node, 2, other).code == 0
    before = balance(node, node.accounts[2])
    take = {
        "@type": "/cosmos.bank.v1beta1.MsgSend",
        "from_address": AUTHORITY,
        "to_address": node.accounts[3],
        "amount": small,
    }
    assert accepted(node, take)["status"] == "PROPOSAL_STATUS_PASSED"

    # An SDK's chain halts at this block.
    node.increase_time(31)
    node.mine()

    assert "the deposits of proposal 1 are lost: spendable balance 0stake" in caplog.text
    assert rest(node, f"{PATH}/1/deposits")["deposits"] == []
    assert balance(node, node.accounts[2]) == before


def ended(*messages: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Execute a block in which votes on three proposals end; the first is accepted, and
    executes messages. Return numbers, states and reasons of failures."""
    base = {
        "status": "PROPOSAL_STATUS_VOTING_PERIOD",
        "voting_end_time": "2023-11-14T22:13:25Z",
        "proposer": AUTHORITY,
    }
    given = genesis(has_keys=True)
    state = json.loads(given.app_state)
    state["gov"]["proposals"] = [{**base, "id": number} for number in "123"]
    state["gov"]["proposals"][0]["messages"] = list(messages)
    yes = [{"option": "VOTE_OPTION_YES", "weight": "1"}]
    vote = {"proposal_id": "1", "voter": dev.dev_addresses()[0], "options": yes}
    state["gov"]["votes"] = [vote]
    chain = Chain(replace(given, app_state=json.dumps(state).encode()))
    chain.block(5, [])
    asked = chain.app.query(f"/{V1}.Query/Proposals", b"", 0, False)
    found = writer.write("gov.ProposalsResponse", asked.value)["proposals"]
    return [(each["id"], each["status"][16:], each["failed_reason"]) for each in found]


def test_a_proposal_may_cancel_a_later_one_of_the_same_block() -> None:
    cancel = {"@type": f"/{V1}.MsgCancelProposal", "proposal_id": "2", "proposer": AUTHORITY}
    reason = "proposal did not get enough votes to pass"
    assert ended(cancel) == [("1", "PASSED", ""), ("3", "REJECTED", reason)]


def test_an_unexpected_error_of_a_handler_fails_the_proposal(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bool:
        raise KeyError("bug")

    monkeypatch.setattr(Gov, "is_in_voting_period", fail)
    vote = {"@type": f"/{V1}.MsgVote", "proposal_id": "3", "voter": AUTHORITY, "option": 1}
    (_, state, reason), *_ = ended(vote)
    assert state == "FAILED"
    assert reason == (
        f'handling x/gov proposal msg [proposal_id:3 voter:"{AUTHORITY}"'
        " option:VOTE_OPTION_YES ] PANICKED: KeyError('bug')"
    )
    assert f"message handler of /{V1}.MsgVote raised an error" in caplog.text


def test_the_votes_of_a_chain_without_staking_end() -> None:
    proposal = {
        "id": "1",
        "status": "PROPOSAL_STATUS_VOTING_PERIOD",
        "voting_end_time": "2023-01-01T00:00:00Z",
    }
    bank = began(proposals=[proposal])
    request = BlockRequest(
        1, GENESIS_TIME, (), (), b"", b"", Commit(), ValidatorSet(), ValidatorSet()
    )
    (event,) = bank.finalize_block(request).end_events
    assert {each.key: each.value for each in event.attributes}[b"proposal_log"] == b"rejected"


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (f"{V1}.MsgVote", "yes", 'unknown value "yes" for enum cosmos.gov.v1.VoteOption'),
        (f"{V1}.MsgVote", 1 << 31, "number into Go value of type v1.VoteOption"),
        # The reader finds responses by their names, too.
        ("staking.ValidatorResponse", 1 << 31, "number into Go value of type types.BondStatus"),
        ("gov.ProposalResponse", [], "array into Go value of type v1.ProposalStatus"),
    ],
)
def test_invalid_enums_of_messages_are_refused(kind: str, value: object, words: str) -> None:
    fields = {
        "MsgVote": {"option": value},
        "ValidatorResponse": {"validator": {"status": value}},
        "ProposalResponse": {"proposal": {"status": value}},
    }
    with pytest.raises(InvalidRequest, match=words):
        reader.read(kind, fields[kind.rsplit(".", maxsplit=1)[-1]])


def test_an_unknown_state_of_proposals_is_refused(noderpc_bank: BankNode) -> None:
    with pytest.raises(HTTPError) as refused:
        rest(noderpc_bank, f"{PATH}?proposal_status=open")
    words = b"open is not a valid v1.ProposalStatus"
    assert words in refused.value.read()


def test_metadata_that_is_not_json_may_have_any_title(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    fields = {"initial_deposit": DEPOSIT, "proposer": node.accounts[1]}
    words = {"title": "T", "summary": "S", "metadata": '{"title": "Other", "number": NaN}'}
    assert sent(node, 1, message("MsgSubmitProposal", {**fields, **words}, V1)).code == 0


@pytest.fixture
def raised_recursion_limit() -> Iterator[None]:
    """Raise the recursion limit beyond the size of the stack, as py_ecc does."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("raised_recursion_limit")
def test_metadata_that_is_nested_deeply_does_not_stop_the_chain(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    fields = {"initial_deposit": DEPOSIT, "proposer": node.accounts[1]}
    words = {"title": "T", "summary": "S", "metadata": "[" * 200_000}
    deep = message("MsgSubmitProposal", {**fields, **words}, V1)
    done = sent(node, 1, deep, gas=100_000_000)
    assert "metadata too long" in done.log
    words["metadata"] = "M"
    assert sent(node, 1, message("MsgSubmitProposal", {**fields, **words}, V1)).code == 0


def test_parameters_without_a_period_are_refused(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    params = rest(node, "/cosmos/gov/v1/params/voting")["params"]
    del params["expedited_voting_period"]
    update = {"@type": f"/{V1}.MsgUpdateParams", "authority": AUTHORITY, "params": params}
    done = accepted(node, update)
    assert done["failed_reason"] == "expedited voting period must not be nil: 0"


def test_a_negative_ratio_of_deposits_stops_all_proposals(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    params = rest(node, "/cosmos/gov/v1/params/voting")["params"]
    update = {"authority": AUTHORITY, "params": {**params, "min_deposit_ratio": "-0.5"}}
    done = accepted(node, {"@type": f"/{V1}.MsgUpdateParams", **update})
    assert done["status"] == "PROPOSAL_STATUS_PASSED"
    fields = {"initial_deposit": DEPOSIT, "proposer": node.accounts[1], "metadata": "M"}
    words = {"title": "T", "summary": "S"}
    refused = sent(node, 1, message("MsgSubmitProposal", {**fields, **words}, V1))
    assert refused.code == 111222
    assert "negative coin amount: -5000000" in refused.log


def test_an_invalid_option_of_a_vote_is_shown_as_in_go(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    fields = {"proposal_id": "1", "voter": node.accounts[1]}
    # The weight is an Arabic digit, a quotation mark, a backslash and a line feed.
    options = [{"option": -5, "weight": '\u0661"\\\n'}]
    refused = sent(node, 1, message("MsgVoteWeighted", {**fields, "options": options}, V1))
    assert r'0: option:251 weight:"\331\241\"\\\n" : invalid vote option' in refused.log


def test_text_of_v1beta1_is_shown_in_both_versions(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    proposer = node.accounts[1]
    assert propose_text(node) == "1"
    parts = [
        {"option": "VOTE_OPTION_YES", "weight": "0.7"},
        {"option": "VOTE_OPTION_ABSTAIN", "weight": "0.3"},
    ]
    vote = {"proposal_id": "1", "voter": node.accounts[0], "options": parts}
    assert sent(node, 0, message("MsgVoteWeighted", vote, V1BETA1)).code == 0

    shown = [{**each, "weight": f"{each['weight']:0<20}"} for each in parts]
    voter = {"proposal_id": "1", "voter": node.accounts[0]}
    assert rest(node, f"{PATH}/1/votes/{node.accounts[0]}") == {
        "vote": {**voter, "options": shown, "metadata": ""}
    }
    assert rest(node, f"{LEGACY_PATH}/1/votes")["votes"] == [
        {**voter, "option": "VOTE_OPTION_UNSPECIFIED", "options": shown}
    ]
    tally = {"yes": "7000000", "abstain": "3000000", "no": "0", "no_with_veto": "0"}
    assert rest(node, f"{LEGACY_PATH}/1/tally") == {"tally": tally}
    deposit = {"proposal_id": "1", "depositor": proposer, "amount": DEPOSIT}
    assert rest(node, f"{PATH}/1/deposits")["deposits"] == [deposit]
    assert rest(node, f"{LEGACY_PATH}/1/deposits/{proposer}") == {"deposit": deposit}
    end_votes(node)
    (proposal,) = rest(node, f"{PATH}?proposal_status=3")["proposals"]
    assert proposal["messages"] == [
        {
            "@type": f"/{V1}.MsgExecLegacyContent",
            "content": TEXT,
            "authority": AUTHORITY,
        }
    ]
    (legacy,) = rest(node, f"{LEGACY_PATH}?proposal_status=PROPOSAL_STATUS_PASSED")["proposals"]
    assert legacy["content"] == TEXT
    assert legacy["final_tally_result"] == tally
    page = f"pagination.offset={(1 << 64) - 1}"
    assert rest(node, f"{PATH}?{page}")["proposals"] == []
    assert rest(node, f"{LEGACY_PATH[:-9]}params/tallying")["tally_params"] == {
        "quorum": "0.334000000000000000",
        "threshold": "0.500000000000000000",
        "veto_threshold": "0.334000000000000000",
    }


def began(**changes: Any) -> Bank:
    """Begin a chain whose genesis state has these members of gov."""
    state = json.loads(dev.app_state("cosmos"))
    own = json.loads(dev.app_state("cosmos", modules=True))["gov"]
    own["params"] |= changes.get("params", {})
    state["gov"] = {**own, **changes, "params": own["params"]}
    stored = DictState()
    bank = Bank(stored)
    first = Genesis(CHAIN_ID, GENESIS_TIME, app_state=json.dumps(state).encode())
    stored.apply(bank.init_chain(first).changes)
    return bank


def test_a_genesis_document_may_have_proposals() -> None:
    began(
        constitution="Words",
        starting_proposal_id="8",
        proposals=[
            {
                "id": "7",
                "messages": [
                    {
                        "@type": "/cosmos.slashing.v1beta1.MsgUpdateParams",
                        "authority": AUTHORITY,
                        # Values of proposals need not be valid.
                        "params": {
                            "downtime_jail_duration": "-1.5s",
                            "slash_fraction_downtime": "-0.1",
                        },
                    },
                    {
                        "@type": "/cosmos.staking.v1beta1.MsgCreateValidator",
                        "pubkey": {
                            "@type": "/cosmos.crypto.ed25519.PubKey",
                            "key": b64encode(bytes(32)).decode(),
                        },
                    },
                ],
                "status": "PROPOSAL_STATUS_VOTING_PERIOD",
                "voting_end_time": "2999-01-01T00:00:00Z",
            }
        ],
        votes=[{"proposal_id": "7", "voter": dev.dev_addresses()[1], "options": []}],
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"starting_proposal_id": "0"}, "starting_proposal_id: expected more than 0"),
        ({"params": {"quorum": "1.1"}}, "params: quorom too large: 1.1"),
        ({"params": {"quorum": None}}, "params: invalid quorum string: decimal string"),
        ({"params": {"voting_period": "0s"}}, "params: voting period must be positive: 0s"),
        ({"params": {"expedited_voting_period": "30s"}}, "period 30s must be strictly less"),
        ({"params": {"min_deposit": []}}, "params: invalid minimum deposit: "),
        ({"params": {"proposal_cancel_dest": "cosmos1"}}, "address is invalid: cosmos1"),
        ({"deposits": [{"depositor": "nobody"}]}, "gov.deposits[0].depositor: decoding bech32"),
        (
            {"deposits": [{"depositor": dev.dev_addresses()[0], "amount": DEPOSIT}]},
            "equals the deposits, 10000000stake, got no coins",
        ),
        ({"votes": [{"voter": 5}]}, "gov.votes[0].voter"),
        (
            {"votes": [{"voter": dev.dev_addresses()[0], "options": [{"weight": "half"}]}]},
            "gov.votes[0].options[0].weight: failed to set decimal string with base 10: half",
        ),
        (
            {"proposals": [{"final_tally_result": {"no_count": "some"}}]},
            'proposals[0].final_tally_result.no_count: math/big: cannot unmarshal "some"',
        ),
        ({"proposals": [{"status": "open"}]}, "status: expected PROPOSAL_STATUS_UNSPECIFIED,"),
        (
            {"proposals": [{"status": "PROPOSAL_STATUS_VOTING_PERIOD"}]},
            "voting_end_time: expected a time",
        ),
        (
            {"proposals": [{"messages": [{"@type": "/cosmos.gov.v1.MsgVote", "voter": 5}]}]},
            "messages[0]: json: cannot unmarshal number into Go value of type string",
        ),
        ({"proposals": [{"messages": [{}]}]}, "@type: expected a string that is not empty"),
    ],
)
def test_a_wrong_state_of_governance_is_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        began(**changes)
    assert "document: gov" in str(refused.value)
    assert words in str(refused.value)


def test_a_proposal_creates_a_fund_of_the_pool() -> None:
    began = genesis()
    params = {"enabled_distribution_denoms": ["stake"], "distribution_frequency": "1"}
    state = json.loads(began.app_state or b"")
    state["protocolpool"] = {"continuous_funds": [], "params": params}
    chain = Chain(replace(began, app_state=json.dumps(state).encode()))
    fund = {
        "@type": "/cosmos.protocolpool.v1.MsgCreateContinuousFund",
        "authority": AUTHORITY,
        "recipient": PEOPLE[2],
        "percentage": "0.25",
    }
    proposal = {
        "messages": [fund],
        "initial_deposit": DEPOSIT,
        "proposer": PEOPLE[0],
        "title": "Title",
        "summary": "Summary",
    }
    vote = {"proposal_id": "1", "voter": PEOPLE[0], "option": "VOTE_OPTION_YES"}

    chain.block(5, [Sent(0, f"{V1}.MsgSubmitProposal", proposal)])
    chain.block(5, [Sent(0, f"{V1}.MsgVote", vote)])
    chain.block(31, [])

    assert chain.ask("gov.Proposal", proposal_id="1")["proposal"]["failed_reason"] == ""
    (found,) = chain.list_of("protocolpool.ContinuousFunds", "continuous_funds")
    assert (found["recipient"], found["percentage"]) == (PEOPLE[2], "0.250000000000000000")
