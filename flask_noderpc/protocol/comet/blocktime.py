"""BFT time: the weighted median of the timestamps of the parent's votes."""

from __future__ import annotations

from ...domain.block import BlockIDFlag, Commit
from ...domain.validator import ValidatorSet


def median_time(commit: Commit, validators: ValidatorSet) -> int:
    """Return the median vote time, weighted by power, without absent votes.

    ``validators`` is the set that signed the commit. CometBFT: the first time, in
    ascending order, at which half of the power that voted is reached.
    """
    weighted = sorted(
        (sig.timestamp, validators.by_address[sig.validator_address][1].voting_power)
        for sig in commit.signatures
        if sig.block_id_flag != BlockIDFlag.ABSENT
        and sig.validator_address in validators.by_address
    )
    remaining = sum(power for _, power in weighted) // 2
    for time_ns, power in weighted:
        if remaining <= power:
            return time_ns
        remaining -= power
    raise ValueError("a commit without votes has no median time")
