"""Penalties of validators that miss blocks or sign two at one height; SDK:
x/slashing/keeper/infractions.go."""

from __future__ import annotations

from ..bank.balances import event
from ..bank.consensus import VoteInfo
from ..bank.errors import TxError
from ..protocol import decimals
from ..staking import slashing as tokens
from ..staking import validators
from ..staking.records import UNBONDED
from .errors import NOT_JAILED, SELF_DELEGATION_TOO_LOW, VALIDATOR_JAILED
from .state import SigningInfo, Slashing

# Blocks after which a change of the validators takes effect.
_UPDATE_DELAY = 1


def handle_vote(slashing: Slashing, vote: VoteInfo) -> None:
    """Count a block that a validator signed or missed; slash and jail the validator if it
    missed too many."""
    validator = slashing.staking.find_by_consensus_address(vote.address)
    info = slashing.find_info(vote.address)
    # The SDK ends the chain if a validator of the last block does not exist any more, or has no
    # record.
    if validator is None or validator.jailed or info is None:
        return
    context, params = slashing.context, slashing.params()
    height = context.environment.height
    index = info.index_offset % params.signed_blocks_window
    info.index_offset += 1
    if slashing.has_missed(vote.address, index) != vote.is_missing:
        slashing.set_missed(vote.address, index, missed=vote.is_missing)
        info.missed_blocks_counter += 1 if vote.is_missing else -1
    shown = context.environment.consensus.show(vote.address)
    if vote.is_missing:
        context.events.append(
            event(
                "liveness",
                address=shown,
                missed_blocks=str(info.missed_blocks_counter),
                height=str(height),
            )
        )
    is_window_over = height > info.start_height + params.signed_blocks_window
    has_missed = info.missed_blocks_counter > params.most_missed
    # The SDK also ends the chain if the validator was unbonded after its last vote.
    if is_window_over and has_missed and validator.status != UNBONDED:
        _punish_downtime(slashing, vote, info, shown)
    slashing.set_info(vote.address, info)


def _punish_downtime(slashing: Slashing, vote: VoteInfo, info: SigningInfo, shown: str) -> None:
    context, params = slashing.context, slashing.params()
    # The powers of the last commit come from an earlier block.
    height = context.environment.height - _UPDATE_DELAY - 1
    burned = tokens.slash(
        slashing.staking, vote.address, height, vote.power, params.slash_fraction_downtime
    )
    context.events.append(
        event(
            "slash",
            address=shown,
            power=str(vote.power),
            reason="missing_signature",
            jailed=shown,
            burned_coins=str(burned),
        )
    )
    tokens.jail(slashing.staking, vote.address)
    info.jailed_until = context.environment.time + params.downtime_jail_duration
    info.missed_blocks_counter = info.index_offset = 0
    slashing.forget_missed(vote.address)


def punish_double_sign(slashing: Slashing, address: bytes, height: int, power: int) -> None:
    """Slash a validator that signed two blocks at a height."""
    context, shown = slashing.context, slashing.context.environment.consensus.show(address)
    burned = tokens.slash(
        slashing.staking,
        address,
        height - _UPDATE_DELAY,
        power,
        slashing.params().slash_fraction_double_sign,
    )
    context.events.append(
        event(
            "slash",
            address=shown,
            power=str(power),
            reason="double_sign",
            burned_coins=str(burned),
        )
    )


def jail(slashing: Slashing, address: bytes) -> None:
    """Jail a validator."""
    tokens.jail(slashing.staking, address)
    shown = slashing.context.environment.consensus.show(address)
    slashing.context.events.append(event("slash", jailed=shown))


def unjail(slashing: Slashing, operator: bytes) -> None:
    """End the jailing of a validator; raise :exc:`TxError` if it must stay in jail."""
    staking = slashing.staking
    validator = staking.validator(operator)
    own = staking.delegation(operator, operator)
    owned = decimals.truncate(validator.tokens_of(own.shares))
    if owned < validator.min_self_delegation:
        raise TxError(
            SELF_DELEGATION_TOO_LOW, f"{owned} less than {validator.min_self_delegation}"
        )
    if not validator.jailed:
        raise TxError(NOT_JAILED)
    address = validator.consensus_address
    info = slashing.find_info(address)
    if info is not None and (
        info.tombstoned or slashing.context.environment.time < info.jailed_until
    ):
        raise TxError(VALIDATOR_JAILED)
    validators.unjail(staking, staking.by_consensus_address(address))


def begin(slashing: Slashing, validator_address: bytes) -> None:
    """Begin to count the blocks of a validator that was bonded."""
    info = slashing.find_info(validator_address)
    height = slashing.context.environment.height
    if info is None:
        shown = slashing.context.environment.consensus.show(validator_address)
        info = SigningInfo(shown)
    info.start_height = height
    slashing.set_info(validator_address, info)
