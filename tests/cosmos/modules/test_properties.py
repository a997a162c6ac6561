"""Properties of the modules that hold for all messages, slashes, time jumps and rewinds."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc.backends.base.application import BlockRequest
from flask_noderpc.cosmos.bank import Bank, dev
from flask_noderpc.cosmos.bank.accounts import module_address
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.cosmos.protocol.tx import AMINO_JSON, DIRECT
from flask_noderpc.cosmos.rest import reader, writer
from flask_noderpc.cosmos.staking.faults import FAULTS
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.domain.block import BlockID, BlockIDFlag, Commit, CommitSig
from flask_noderpc.domain.genesis import Genesis, GenesisValidator
from flask_noderpc.domain.time import SECOND
from flask_noderpc.domain.validator import ValidatorSet
from flask_noderpc.errors import ValueNotAllowed
from flask_noderpc.protocol.comet.keys import PrivateKey
from flask_noderpc.protocol.comet.validators import MAX_TOTAL_POWER
from flask_noderpc.testing.chains import GENESIS_TIME, DictState

from ..bank.bank_txs import CHAIN_ID, KEYS, Draft, any_of, coin

KEY = PrivateKey(b"\x11" * 32)
PEOPLE = dev.dev_addresses()[:4]
OPERATORS = [bech32.encode("cosmosvaloper", bech32.decode(each)[1]) for each in PEOPLE]
STAKING, DISTRIBUTION, SLASHING = (
    f"cosmos.{name}.v1beta1." for name in ("staking", "distribution", "slashing")
)
GOV = "cosmos.gov.v1."
GOVERNANCE = bech32.encode("cosmos", module_address("gov"))
# Code of a panic, which a message of this test never causes.
PANIC = 111222

Json = Any


def stake(amount: int) -> Json:
    return {"denom": "stake", "amount": str(amount)}


def genesis(
    double_sign: str = "0.7",
    unbonding: str = "500s",
    initial_height: int = 1,
    each: str = "40000000stake,20token",
    *,
    has_keys: bool = False,
) -> Genesis:
    """Return a development chain with short periods, so that they end during the test.

    ``double_sign`` is the part of its tokens that a validator loses if it equivocates. With
    ``has_keys`` the state has the key of its validator; later ones take part in consensus then.
    """
    state = json.loads(dev.app_state("cosmos", each, modules=True))
    for who, kind in ((1, "ContinuousVestingAccount"), (2, "DelayedVestingAccount")):
        base = {
            "base_account": state["auth"]["accounts"][who],
            "original_vesting": [stake(30_000_000)],
            "end_time": str(GENESIS_TIME // SECOND + 600),
        }
        state["auth"]["accounts"][who] = {
            "@type": f"/cosmos.vesting.v1beta1.{kind}",
            "base_vesting_account": base,
        }
    state["staking"]["params"] |= {
        "unbonding_time": unbonding,
        "max_entries": 2,
        "max_validators": 3,
    }
    state["gov"]["params"] |= {
        "min_deposit": [stake(1_000_000)],
        "expedited_min_deposit": [stake(2_000_000)],
    }
    state["slashing"]["params"] |= {
        "signed_blocks_window": "4",
        "downtime_jail_duration": "5s",
        "slash_fraction_downtime": "0.3",
        "slash_fraction_double_sign": double_sign,
    }
    if has_keys:
        shown = {"@type": "/cosmos.crypto.ed25519.PubKey", "key": _base64(KEY.public.value)}
        state["staking"]["validators"][0]["consensus_pubkey"] = shown
    own = GenesisValidator(KEY.address, KEY.public, 10)
    return Genesis(
        CHAIN_ID,
        GENESIS_TIME,
        validators=(own,),
        app_state=json.dumps(state).encode(),
        initial_height=initial_height,
    )


@dataclass(frozen=True)
class Sent:
    """A message, its signer, and the mode of its signature."""

    who: int
    name: str
    fields: dict[str, Json]
    mode: int = DIRECT


class Chain:
    """An application whose blocks have the given messages, and its state at each height."""

    def __init__(self, began: Genesis | None = None) -> None:
        self.state, self.time = DictState(), GENESIS_TIME
        self.app = Bank(self.state)
        began = began or genesis()
        self.first = began.initial_height
        init = self.app.init_chain(began)
        self.powers = {each.pub_key: each.power for each in init.validators or began.validators}
        self.state.apply(init.changes)
        self.states = [dict(self.state)]
        self.times = [self.time]

    @property
    def height(self) -> int:
        return len(self.states) - 2 + self.first

    def block(self, seconds: int, sent: Sequence[Sent]) -> list[ExecTxResult]:
        self.time += seconds * SECOND
        self.times.append(self.time)
        signed = CommitSig(BlockIDFlag.COMMIT, KEY.address)
        request = BlockRequest(
            height=self.height + 1,
            time=self.time,
            txs=tuple(self._signed(sent)),
            evidence=(),
            proposer_address=KEY.address,
            hash=b"",
            last_commit=Commit(self.height, 0, BlockID(), (signed,)),
            validators=ValidatorSet(),
            next_validators=ValidatorSet(),
        )
        done = self.app.finalize_block(request)
        self.powers |= {each.pub_key: each.power for each in done.validator_updates}
        # CometBFT stops at other changes.
        assert all(each.power >= 0 for each in done.validator_updates)
        assert 0 < sum(self.powers.values()) <= MAX_TOTAL_POWER
        self.state.apply(done.changes)
        self.app.commit(self.height + 1)
        self.states.append(dict(self.state))
        return list(done.tx_results)

    def _signed(self, sent: Sequence[Sent]) -> Iterator[bytes]:
        used = Counter[int]()
        for each in sent:
            address = PEOPLE[each.who]
            found = self.ask("auth.AccountInfo", address=address)["info"]
            sequence = int(found["sequence"]) + used[each.who]
            used[each.who] += 1
            value = reader.read(each.name, self._fields(each))
            yield Draft(
                (any_of(f"/{each.name}", value),),
                sequence,
                int(found["account_number"]),
                KEYS[each.who],
                fee=(coin(1_001, "stake"),),
                gas=2_000_000,
                mode=each.mode,
            ).signed()

    def _fields(self, sent: Sent) -> dict[str, Json]:
        """Return the fields of a message; the height at which an undelegation that it cancels
        began is taken from the state."""
        if not sent.name.endswith("MsgCancelUnbondingDelegation"):
            return sent.fields
        pairs = self.list_of(
            "staking.DelegatorUnbondingDelegations",
            "unbonding_responses",
            delegator_addr=PEOPLE[sent.who],
        )
        entries = [
            (pair["validator_address"], entry) for pair in pairs for entry in pair["entries"]
        ]
        if not entries:
            return {**sent.fields, "creation_height": "1"}
        validator, entry = entries[-1]
        amount = min(int(entry["balance"]), int(sent.fields["amount"]["amount"]))
        return {
            **sent.fields,
            "validator_address": validator,
            "creation_height": entry["creation_height"],
            "amount": stake(amount),
        }

    def rewind(self, height: int) -> None:
        self.state.apply(self.app.undo_changes(height))
        kept = height + 2 - self.first
        del self.states[kept:], self.times[kept:]
        self.time = self.times[-1]

    def ask(self, method: str, **request: Json) -> Json:
        """Return the response to a query such as ``bank.Params``."""
        module, name = method.split(".")
        version = "v1" if module in ("gov", "protocolpool") else "v1beta1"
        path = f"/cosmos.{module}.{version}.Query/{name}"
        data = reader.read(f"{module}.{name}Request", request)
        found = self.app.query(path, data, 0, False)
        assert found.code == 0, (method, found.log)
        return writer.write(f"{module}.{name}Response", found.value)

    def list_of(self, method: str, member: str, **request: Json) -> list[Json]:
        found = self.ask(method, pagination={"limit": "1000"}, **request)
        return list(found[member])


def check(chain: Chain) -> None:
    """Check the invariants of the modules."""
    validators = chain.list_of("staking.Validators", "validators")
    check_supply(chain)
    check_locked(chain)
    check_pools(chain, validators)
    check_shares(chain, validators)
    check_rewards(chain, validators)
    check_powers(chain, validators)
    check_deposits(chain)


def check_deposits(chain: Chain) -> None:
    """The account of governance has the deposits of all proposals."""
    balances = chain.list_of("bank.AllBalances", "balances", address=GOVERNANCE)
    numbers = [each["id"] for each in chain.list_of("gov.Proposals", "proposals")]
    deposits = [
        coins(deposit["amount"])
        for number in numbers
        for deposit in chain.list_of("gov.Deposits", "deposits", proposal_id=number)
    ]
    assert coins(balances) == sum(deposits, Counter())


def check_supply(chain: Chain) -> None:
    owned: Counter[str] = Counter()
    for key, value in chain.state.range(b"bank/\2", limit=10_000):
        owned[key[7 + key[6] :].decode()] += int(value)
    supply = chain.list_of("bank.TotalSupply", "supply")
    assert {each["denom"]: int(each["amount"]) for each in supply} == owned
    assert min(owned.values()) > 0


def check_locked(chain: Chain) -> None:
    """Vesting accounts have the coins that are locked; otherwise the query fails."""
    for each in PEOPLE[1:3]:
        spendable, owned = (
            int(chain.ask(f"bank.{name}", address=each, denom="stake")["balance"]["amount"])
            for name in ("SpendableBalanceByDenom", "Balance")
        )
        assert spendable <= owned
        (tracked,) = chain.ask("auth.Account", address=each)["account"]["base_vesting_account"][
            "delegated_vesting"
        ] or [stake(0)]
        assert 0 <= int(tracked["amount"]) <= 30_000_000


def check_pools(chain: Chain, validators: list[Json]) -> None:
    bonded, others = (
        sum(
            int(each["tokens"])
            for each in validators
            if (each["status"] == "BOND_STATUS_BONDED") == is_bonded
        )
        for is_bonded in (True, False)
    )
    unbonding = sum(
        int(entry["balance"])
        for each in PEOPLE
        for pair in chain.list_of(
            "staking.DelegatorUnbondingDelegations", "unbonding_responses", delegator_addr=each
        )
        for entry in pair["entries"]
    )
    pools = chain.ask("staking.Pool")["pool"]
    assert int(pools["bonded_tokens"]) == bonded
    assert int(pools["not_bonded_tokens"]) == others + unbonding


def check_shares(chain: Chain, validators: list[Json]) -> None:
    for each in validators:
        delegations = chain.list_of(
            "staking.ValidatorDelegations",
            "delegation_responses",
            validator_addr=each["operator_address"],
        )
        shares = [Fraction(one["delegation"]["shares"]) for one in delegations]
        assert sum(shares) == Fraction(each["delegator_shares"])
        assert all(one > 0 for one in shares)
        assert sum(int(one["balance"]["amount"]) for one in delegations) <= int(each["tokens"])


def check_rewards(chain: Chain, validators: list[Json]) -> None:
    """The module owns all rewards, and can pay each delegation and commission."""
    owed: Counter[str] = Counter()
    for each in validators:
        operator = each["operator_address"]
        outstanding = coins(
            chain.ask("distribution.ValidatorOutstandingRewards", validator_address=operator)[
                "rewards"
            ]["rewards"]
        )
        commission = chain.ask("distribution.ValidatorCommission", validator_address=operator)[
            "commission"
        ]["commission"]
        due = coins(commission)
        delegations = chain.list_of(
            "staking.ValidatorDelegations", "delegation_responses", validator_addr=operator
        )
        for one in delegations:
            delegator = one["delegation"]["delegator_address"]
            rewards = chain.ask(
                "distribution.DelegationRewards",
                delegator_address=delegator,
                validator_address=operator,
            )["rewards"]
            due += coins(rewards)
        for denom, amount in due.items():
            assert 0 <= amount <= outstanding[denom], (operator, denom)
        owed += outstanding
    owed += coins(chain.ask("distribution.CommunityPool")["pool"])
    address = bech32.encode("cosmos", module_address("distribution"))
    balances = chain.list_of("bank.AllBalances", "balances", address=address)
    owned = {each["denom"]: int(each["amount"]) for each in balances}
    assert owned == {denom: int(amount) for denom, amount in owed.items() if int(amount)}
    assert all(amount == int(amount) for amount in owed.values())


def coins(given: list[Json]) -> Counter[str]:
    """Return the amounts, by denomination; they are fractions."""
    return Counter({each["denom"]: Fraction(each["amount"]) for each in given})


def check_powers(chain: Chain, validators: list[Json]) -> None:
    bonded = [each for each in validators if each["status"] == "BOND_STATUS_BONDED"]
    assert len(bonded) <= 3
    assert not any(each["jailed"] for each in bonded)
    weakest = min((int(each["tokens"]) // 10**6 for each in bonded), default=0)
    for each in validators:
        if each not in bonded and not each["jailed"] and len(bonded) < 3:
            assert int(each["tokens"]) < 10**6
        if each not in bonded and not each["jailed"]:
            assert int(each["tokens"]) // 10**6 <= max(weakest, 0) or not bonded
        assert Fraction(each["commission"]["commission_rates"]["rate"]) <= 1


people = st.integers(0, 3)
operators = st.sampled_from(OPERATORS[:3])
amounts = st.sampled_from([1, 3, 999_999, 1_000_001, 2_500_000])
modes = st.sampled_from([DIRECT, AMINO_JSON])


Sending = st.SearchStrategy[Sent]


def message(name: str, signer: str, **fields: st.SearchStrategy[Json]) -> Sending:
    def sent(who: int, mode: int, given: dict[str, Json]) -> Sent:
        own = OPERATORS[who] if signer.startswith("validator_addr") else PEOPLE[who]
        return Sent(who, name, {signer: own, **given}, mode)

    return st.builds(sent, people, modes, st.fixed_dictionaries(fields))


def created(who: int, amount: int, rate: str) -> Sent:
    key = PrivateKey(bytes([who + 100]) * 32).public
    fields = {
        "description": {"moniker": f"validator {who}"},
        "commission": {"rate": rate, "max_rate": "0.9", "max_change_rate": "0.5"},
        "min_self_delegation": "1",
        "validator_address": OPERATORS[who],
        "pubkey": {"@type": "/cosmos.crypto.ed25519.PubKey", "key": _base64(key.value)},
        "value": stake(amount),
    }
    return Sent(who, f"{STAKING}MsgCreateValidator", fields)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


stakes = amounts.map(stake)


def delegation(name: str, **fields: st.SearchStrategy[Json]) -> Sending:
    fields |= {"validator_address": operators, "amount": stakes}
    return message(f"{STAKING}Msg{name}", "delegator_address", **fields)


proposals = st.sampled_from(["1", "2", "3"])
PROPOSED = [
    {
        "@type": "/cosmos.distribution.v1beta1.MsgCommunityPoolSpend",
        "authority": GOVERNANCE,
        "recipient": PEOPLE[3],
        "amount": [stake(1_234)],
    },
    {
        "@type": "/cosmos.distribution.v1beta1.MsgUpdateParams",
        "authority": GOVERNANCE,
        "params": {"community_tax": "0.5", "withdraw_addr_enabled": True},
    },
]
rates = st.sampled_from(["0", "0.333333333333333333"])
messages = st.one_of(
    message(
        f"{STAKING}MsgDelegate", "delegator_address", validator_address=operators, amount=stakes
    ),
    message(
        f"{STAKING}MsgUndelegate",
        "delegator_address",
        validator_address=operators,
        amount=stakes,
    ),
    message(
        f"{STAKING}MsgBeginRedelegate",
        "delegator_address",
        validator_src_address=operators,
        validator_dst_address=operators,
        amount=stakes,
    ),
    delegation("CancelUnbondingDelegation"),
    message(
        f"{STAKING}MsgEditValidator",
        "validator_address",
        description=st.just({"moniker": "[do-not-modify]"}),
        min_self_delegation=st.sampled_from(["2", "1000001"]),
    ),
    st.builds(
        created, st.integers(1, 3), amounts, st.sampled_from(["0", "0.333333333333333333"])
    ),
    message(
        f"{DISTRIBUTION}MsgWithdrawDelegatorReward",
        "delegator_address",
        validator_address=operators,
    ),
    message(f"{DISTRIBUTION}MsgWithdrawValidatorCommission", "validator_address"),
    message(
        f"{DISTRIBUTION}MsgSetWithdrawAddress",
        "delegator_address",
        withdraw_address=st.sampled_from(PEOPLE),
    ),
    message(
        f"{DISTRIBUTION}MsgFundCommunityPool",
        "depositor",
        amount=st.just([stake(12_345), {"denom": "token", "amount": "1"}]),
    ),
    message(
        f"{DISTRIBUTION}MsgDepositValidatorRewardsPool",
        "depositor",
        validator_address=operators,
        amount=st.just([stake(1_001)]),
    ),
    message(f"{SLASHING}MsgUnjail", "validator_addr"),
    message(
        f"{GOV}MsgSubmitProposal",
        "proposer",
        title=st.just("title"),
        summary=st.just("summary"),
        metadata=st.just("metadata"),
        messages=st.lists(st.sampled_from(PROPOSED), max_size=2),
        initial_deposit=stakes.map(lambda each: [each]),
        expedited=st.booleans(),
    ),
    message(
        f"{GOV}MsgDeposit",
        "depositor",
        proposal_id=proposals,
        amount=stakes.map(lambda each: [each]),
    ),
    message(
        f"{GOV}MsgVote",
        "voter",
        proposal_id=proposals,
        option=st.sampled_from(["VOTE_OPTION_YES", "VOTE_OPTION_NO_WITH_VETO"]),
    ),
    message(f"{GOV}MsgCancelProposal", "proposer", proposal_id=proposals),
    message(
        "cosmos.bank.v1beta1.MsgSend",
        "from_address",
        to_address=st.sampled_from(PEOPLE),
        amount=stakes.map(lambda each: [each]),
    ),
)


@dataclass(frozen=True)
class Step:
    """A block, and the fault or rewind before it."""

    seconds: int
    sent: list[Sent]
    missing: list[str]
    equivocating: str | None
    back: int
    accepts: bool


steps = st.builds(
    Step,
    st.sampled_from([1, 1, 7, 30, 501, 100_000]),
    st.lists(messages, max_size=8),
    st.lists(st.sampled_from(OPERATORS), max_size=2),
    st.sampled_from([None, None, None, None, *OPERATORS[1:]]),
    st.sampled_from([0, 0, 0, 0, 1, 3]),
    st.booleans(),
)
# Validators and delegations, as few random messages create them.
VALIDATORS = [created(1, 7_777_777, "0.333333333333333333"), created(2, 2_500_000, "0")]
DELEGATIONS = [
    Sent(
        who,
        f"{STAKING}MsgDelegate",
        {
            "delegator_address": PEOPLE[who],
            "validator_address": operator,
            "amount": stake(1_000_001),
        },
    )
    for who in (1, 2, 3)
    for operator in OPERATORS[:3]
]


def unjailing(chain: Chain) -> Iterator[Sent]:
    """Yield messages that unjail validators; messages that are too early fail."""
    for each in chain.list_of("staking.Validators", "validators"):
        if each["jailed"]:
            who = OPERATORS.index(each["operator_address"])
            yield Sent(who, f"{SLASHING}MsgUnjail", {"validator_addr": OPERATORS[who]})


def accepting(chain: Chain) -> Iterator[Sent]:
    """Yield votes of the first two validators' operators for each proposal that has a vote."""
    for each in chain.list_of("gov.Proposals", "proposals", proposal_status=2):
        for who in (0, 1):
            fields = {"voter": PEOPLE[who], "proposal_id": each["id"]}
            yield Sent(who, f"{GOV}MsgVote", {**fields, "option": "VOTE_OPTION_YES"})


@given(
    st.lists(steps, min_size=4, max_size=12),
    st.sampled_from(["0.7", "1"]),
    st.sampled_from(["500s", "500s", "1s", "25s"]),
)
@settings(max_examples=80)
def test_coins_are_conserved(chosen: Sequence[Step], double_sign: str, unbonding: str) -> None:
    chain = Chain(genesis(double_sign, unbonding))
    faults = chain.app.capabilities[FAULTS]
    chain.block(5, VALIDATORS)
    chain.block(5, DELEGATIONS)
    for _ in range(2):
        chain.block(5, [])
    for step in chosen:
        if step.back:
            target = max(1, chain.height - step.back)
            before = chain.states[target]
            chain.rewind(target)
            assert dict(chain.state) == before
        # A validator without votes can't have faults.
        for validator in step.missing:
            with suppress(ValueNotAllowed):
                faults.miss_blocks(validator, 3)
        with suppress(ValueNotAllowed):
            faults.equivocate(step.equivocating or "")
        votes = accepting(chain) if step.accepts else ()
        results = chain.block(step.seconds, [*unjailing(chain), *step.sent, *votes])
        assert not [each.log for each in results if each.code == PANIC]
        check(chain)


def test_the_first_messages_are_executed() -> None:
    chain = Chain()
    results = (*chain.block(5, VALIDATORS), *chain.block(5, DELEGATIONS))
    assert {each.code for each in results} == {0}
    check(chain)
