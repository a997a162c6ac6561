"""Records in the store of x/distribution; SDK: x/distribution/types."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..bank.params import check_rate
from ..protocol.dec_coins import DecCoin
from ..protocol.records import record


@record("DistributionParams")
@dataclass(frozen=True, slots=True)
class Params:
    """Parameters of x/distribution; the two rewards of the proposer have no effect."""

    community_tax: int = 0
    base_proposer_reward: int = 0
    bonus_proposer_reward: int = 0
    withdraw_addr_enabled: bool = False

    def check(self) -> None:
        """Raise :exc:`TxError` for invalid parameters."""
        texts = {"nil": "must be not nil", "negative": "must be positive"}
        check_rate("community tax", self.community_tax, **texts)


@record("FeePool")
@dataclass(slots=True)
class FeePool:
    """Coins of the community."""

    community_pool: list[DecCoin] = field(default_factory=list)


@record("BytesValue")
@dataclass(slots=True)
class BytesValue:
    """Bytes in a message of their own."""

    value: bytes = b""


@record("ValidatorHistoricalRewards")
@dataclass(slots=True)
class HistoricalRewards:
    """Rewards for each token of a validator up to a period, and the number of records that
    need this one."""

    cumulative_reward_ratio: list[DecCoin] = field(default_factory=list)
    reference_count: int = 0


@record("ValidatorCurrentRewards")
@dataclass(slots=True)
class CurrentRewards:
    """Rewards of a validator's delegators in the current period."""

    rewards: list[DecCoin] = field(default_factory=list)
    period: int = 0


@record("ValidatorAccumulatedCommission")
@dataclass(slots=True)
class AccumulatedCommission:
    """Commission of a validator that was not withdrawn."""

    commission: list[DecCoin] = field(default_factory=list)


@record("ValidatorOutstandingRewards")
@dataclass(slots=True)
class OutstandingRewards:
    """Rewards and commission of a validator that were not withdrawn."""

    rewards: list[DecCoin] = field(default_factory=list)


@record("ValidatorSlashEvent")
@dataclass(frozen=True, slots=True)
class SlashEvent:
    """The end of a period at which a fraction of a validator's tokens was destroyed."""

    validator_period: int = 0
    fraction: int = 0


@record("DelegatorStartingInfo")
@dataclass(frozen=True, slots=True)
class StartingInfo:
    """Period and height at which a delegation's rewards begin, and its tokens then."""

    previous_period: int = 0
    stake: int = 0
    height: int = 0
