"""Results of votes; SDK: x/gov/keeper/tally.go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from ..bank.accounts import module_address
from ..protocol import decimals
from ..staking.records import Validator
from ..staking.state import BONDED_POOL, BY_POWER, Staking
from .records import (
    ABSTAIN,
    NO,
    NO_WITH_VETO,
    YES,
    Params,
    Proposal,
    TallyResult,
    WeightedOption,
    decimal,
)
from .state import Gov


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of the votes on a proposal, and its consequences."""

    result: TallyResult
    passes: bool = False
    burns: bool = False
    """True if the deposits are destroyed."""


@dataclass(slots=True)
class _Voter:
    """A bonded validator: what others delegated to it and voted with, and its own vote."""

    validator: Validator
    deducted: int = 0
    options: Sequence[WeightedOption] = ()

    def power(self, shares: int) -> int:
        """Return the voting power of shares, in tokens."""
        found = decimals.mul_int(shares, self.validator.tokens)
        return decimals.quo(found, self.validator.delegator_shares)


class _Count:
    """Voting power of each option."""

    def __init__(self) -> None:
        self.total = 0
        self.powers: Counter[int] = Counter()

    def add(self, options: Sequence[WeightedOption], power: int) -> None:
        """Count a vote."""
        for each in options:
            self.powers[each.option] += decimals.mul(power, decimal(each.weight))
        self.total += power

    @property
    def result(self) -> TallyResult:
        """The count in whole tokens."""
        whole = (decimals.truncate(self.powers[o]) for o in (YES, ABSTAIN, NO, NO_WITH_VETO))
        return TallyResult(*map(str, whole))


def tally(gov: Gov, proposal: Proposal) -> Outcome:
    """Count the votes on a proposal, and remove them."""
    count = _count(gov, proposal.id)
    context = gov.context
    denom = Staking(context).bond_denom()
    # A chain without staking has no such account, so its proposals are rejected.
    bonded = context.balances.get(module_address(BONDED_POOL), denom)
    if not bonded:
        return Outcome(count.result)
    return _outcome(count, bonded, proposal, gov.params())


def _outcome(count: _Count, bonded: int, proposal: Proposal, params: Params) -> Outcome:
    result, powers = count.result, count.powers
    if decimals.quo(count.total, decimals.of(bonded)) < decimal(params.quorum):
        return Outcome(result, burns=params.burn_vote_quorum)
    decisive = count.total - powers[ABSTAIN]
    if not decisive:
        return Outcome(result)
    if decimals.quo(powers[NO_WITH_VETO], count.total) > decimal(params.veto_threshold):
        return Outcome(result, burns=params.burn_vote_veto)
    threshold = params.expedited_threshold if proposal.expedited else params.threshold
    return Outcome(result, passes=decimals.quo(powers[YES], decisive) > decimal(threshold))


def _count(gov: Gov, number: int) -> _Count:
    """Count votes: each voter's with its delegations, and a validator's with the others."""
    staking, count = Staking(gov.context), _Count()
    voters = {each.operator_address: _Voter(each) for each in _bonded(staking)}
    for _, vote in gov.votes(number):
        voter = staking.parse(vote.voter)
        own = voters.get(staking.show_operator(voter))
        if own is not None:
            own.options = vote.options
        for delegation in staking.delegations_of(voter):
            to = voters.get(delegation.validator_address)
            if to is not None:
                to.deducted += delegation.shares
                count.add(vote.options, to.power(delegation.shares))
    gov.delete_votes(number)
    for each in voters.values():
        if each.options:
            left = each.validator.delegator_shares - each.deducted
            count.add(each.options, each.power(left))
    return count


def _bonded(staking: Staking) -> list[Validator]:
    by_power = staking.store.iterate(BY_POWER, is_reverse=True)
    highest = islice(by_power, staking.params().max_validators)
    found = (staking.validator(operator) for _, operator in highest)
    return [each for each in found if each.is_bonded]
