"""Records in the store of x/gov; SDK: x/gov/types/v1. Times and durations are nanoseconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from ..bank.errors import INTERNAL, TxError
from ..bank.params import check_positive
from ..protocol import coins, decimals
from ..protocol.coins import Coin, Coins
from ..protocol.fields import AnyValue
from ..protocol.records import record
from ..protocol.text import duration

DEPOSIT_PERIOD, VOTING_PERIOD, PASSED, REJECTED, FAILED = range(1, 6)
"""States of a proposal: numbers of ``ProposalStatus``."""

YES, ABSTAIN, NO, NO_WITH_VETO = range(1, 5)
"""Votes: numbers of ``VoteOption``."""


def decimal(text: str) -> int:
    """Parse a decimal number of a parameter; raise :exc:`TxError`."""
    try:
        return decimals.parse(text)
    except ValueError as error:
        raise TxError(INTERNAL, str(error)) from None


@record("GovParams")
@dataclass(frozen=True, slots=True)
class Params:
    """Parameters of x/gov; decimal numbers are text."""

    min_deposit: Coins = ()
    max_deposit_period: int | None = None
    voting_period: int | None = None
    quorum: str = ""
    threshold: str = ""
    veto_threshold: str = ""
    min_initial_deposit_ratio: str = ""
    proposal_cancel_ratio: str = ""
    proposal_cancel_dest: str = ""
    expedited_voting_period: int | None = None
    expedited_threshold: str = ""
    expedited_min_deposit: Coins = ()
    burn_vote_quorum: bool = False
    burn_proposal_deposit_prevote: bool = False
    burn_vote_veto: bool = False
    min_deposit_ratio: str = ""

    def check(self) -> None:
        """Raise :exc:`TxError` for invalid parameters; SDK: ``Params.ValidateBasic``."""
        least, expedited = tuple(self.min_deposit), tuple(self.expedited_min_deposit)
        if not (least and coins.is_valid(least)):
            self._refuse(f"invalid minimum deposit: {coins.show(least)}")
        if not (expedited and coins.is_valid(expedited)):
            self._refuse(f"invalid expedited minimum deposit: {coins.show(expedited)}")
        if covers(least, expedited):
            text = "expedited minimum deposit must be greater than minimum deposit"
            self._refuse(f"{text}: {coins.show(expedited)}")
        self._check_period("maximum deposit period", self.max_deposit_period)
        self._number("quorum", "quorum string", "quorom cannot be negative", "quorom too large")
        self._check_thresholds()
        self._check_periods()
        self._check_ratios()

    def _check_thresholds(self) -> None:
        names = ("threshold", "expedited_threshold", "veto_threshold")
        texts = (
            ("threshold string", "vote threshold"),
            ("expedited threshold string", "expedited vote threshold"),
            ("vetoThreshold string", "veto threshold"),
        )
        found: list[int] = []
        for name, (what, shown) in zip(names, texts, strict=True):
            low, high = f"{shown} must be positive", f"{shown} too large"
            found.append(self._number(name, what, low, high, is_positive=True))
            if name == "expedited_threshold" and found[1] <= found[0]:
                self._refuse(
                    f"expedited vote threshold {decimals.show(found[1])}, must be greater than"
                    f" the regular threshold {decimals.show(found[0])}"
                )

    def _check_periods(self) -> None:
        voting = self._check_period("voting period", self.voting_period)
        expedited = self._check_period("expedited voting period", self.expedited_voting_period)
        if expedited >= voting:
            self._refuse(
                f"expedited voting period {duration(expedited)} must be strictly less"
                f" that the regular voting period {duration(voting)}"
            )

    def _check_period(self, shown: str, period: int | None) -> int:
        if period is None:
            self._refuse(f"{shown} must not be nil: 0")
        check_positive(shown, period, duration(period))
        return period

    def _check_ratios(self) -> None:
        shown = "mininum initial deposit ratio of proposal"
        texts = shown, f"{shown} must be positive", f"{shown} is too large"
        self._number("min_initial_deposit_ratio", *texts)
        shown = "burn rate of cancel proposal"
        texts = shown, f"{shown} must be positive", f"{shown} is too large"
        self._number("proposal_cancel_ratio", *texts)

    def _number(
        self, name: str, what: str, low: str, high: str, *, is_positive: bool = False
    ) -> int:
        text = getattr(self, name)
        try:
            found = decimals.parse(text)
        except ValueError as error:
            self._refuse(f"invalid {what}: {error}")
        shown = text if name == "quorum" else decimals.show(found)
        if found < 0 or (is_positive and not found):
            self._refuse(f"{low}: {decimals.show(found)}")
        if found > decimals.ONE:
            self._refuse(f"{high}: {shown}")
        return found

    def _refuse(self, text: str) -> NoReturn:
        raise TxError(INTERNAL, text)


@record("TallyResult")
@dataclass(frozen=True, slots=True)
class TallyResult:
    """Voting power of each option, in tokens."""

    yes_count: str = "0"
    abstain_count: str = "0"
    no_count: str = "0"
    no_with_veto_count: str = "0"


@record("WeightedVoteOption")
@dataclass(frozen=True, slots=True)
class WeightedOption:
    """A vote, and the part of the voter's power that it has, as text."""

    option: int = 0
    weight: str = ""


@record("GovVote")
@dataclass(frozen=True, slots=True)
class Vote:
    """The vote of an account, which may be split."""

    proposal_id: int = 0
    voter: str = ""
    options: list[WeightedOption] = field(default_factory=list)
    metadata: str = ""


@record("GovDeposit")
@dataclass(frozen=True, slots=True)
class Deposit:
    """The coins that an account has deposited for a proposal."""

    proposal_id: int = 0
    depositor: str = ""
    amount: Coins = ()


@record("Proposal")
@dataclass(slots=True)
class Proposal:
    """A proposal, and the messages that it executes if it passes."""

    id: int = 0
    messages: list[AnyValue] = field(default_factory=list)
    status: int = 0
    final_tally_result: TallyResult | None = None
    submit_time: int | None = None
    deposit_end_time: int | None = None
    total_deposit: Coins = ()
    voting_start_time: int | None = None
    voting_end_time: int | None = None
    metadata: str = ""
    title: str = ""
    summary: str = ""
    proposer: str = ""
    expedited: bool = False
    failed_reason: str = ""

    def min_deposit(self, params: Params) -> Coins:
        """Return the total deposit at which the voting period begins."""
        found = params.expedited_min_deposit if self.expedited else params.min_deposit
        return tuple(found)


def covers(owned: Coins, needed: Coins) -> bool:
    """Return true if there is at least the needed amount of each denomination."""
    amounts = {coin.denom: coin.value for coin in owned}
    if needed and not owned:
        return False
    return all(amounts.get(coin.denom, 0) >= coin.value for coin in needed)


def scaled(given: Coins, ratio: int, to_int: Callable[[int], int]) -> tuple[Coin, ...]:
    """Return each amount times a decimal number, as ``to_int`` makes it whole."""
    return tuple(
        Coin(each.denom, to_int(decimals.mul(decimals.of(each.value), ratio))) for each in given
    )
