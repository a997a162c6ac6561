"""Work of x/staking at the beginning and the end of each block; SDK: x/staking/keeper/abci.go,
historical_info.go and val_state_change.go."""

from __future__ import annotations

from ...protocol.comet.messages import MESSAGES as COMET
from ...protocol.protobuf import message
from ..bank.balances import event
from ..bank.errors import TxError
from ..protocol import coins
from ..protocol.records import encode
from . import delegations, validators
from .records import Validator
from .state import HISTORICAL_INFO, Staking


def begin(staking: Staking) -> None:
    """Store the header and the bonded validators of the block, and remove old ones."""
    retained = staking.params().historical_entries
    height = staking.height - retained
    while height >= 0 and staking.store.get(_history_key(height)) is not None:
        staking.store.delete(_history_key(height))
        height -= 1
    if not retained:
        return
    staking.params()
    bonded = [staking.validator(operator) for operator in staking.last_powers()]
    environment = staking.context.environment
    header = COMET.encode(
        "Header",
        version=b"",
        chain_id=environment.head.chain_id,
        height=environment.height,
        time=environment.time,
        last_block_id={"parts": b""},
        next_validators_hash=environment.block.next_validators_hash,
        app_hash=environment.head.app_hash,
        proposer_address=environment.block.proposer,
    )
    members = b"".join(message(2, encode(each)) for each in sorted(bonded, key=_by_power))
    staking.store.set(_history_key(staking.height), message(1, header) + members)


def _history_key(height: int) -> bytes:
    return HISTORICAL_INFO + height.to_bytes(8)


def _by_power(validator: Validator) -> tuple[int, bytes]:
    return -validator.power, validator.consensus_address


def end(staking: Staking) -> None:
    """Change the chain's validators, and complete what has matured."""
    context = staking.context
    context.validator_updates += validators.apply_powers(staking)
    validators.unbond_mature(staking)
    for pair in staking.mature_unbondings():
        delegator = staking.parse(pair.delegator_address)
        operator = staking.parse_operator(pair.validator_address)
        try:
            amount = delegations.complete_unbonding(staking, delegator, operator)
        except TxError:
            # An earlier entry of the same pair completed this one, too.
            continue
        context.events.append(
            event(
                "complete_unbonding",
                amount=coins.show(amount),
                validator=pair.validator_address,
                delegator=pair.delegator_address,
            )
        )
    for triplet in staking.mature_redelegations():
        delegator = staking.parse(triplet.delegator_address)
        source = staking.parse_operator(triplet.validator_src_address)
        destination = staking.parse_operator(triplet.validator_dst_address)
        try:
            amount = delegations.complete_redelegation(staking, delegator, source, destination)
        except TxError:
            continue
        context.events.append(
            event(
                "complete_redelegation",
                amount=coins.show(amount),
                delegator=triplet.delegator_address,
                source_validator=triplet.validator_src_address,
                destination_validator=triplet.validator_dst_address,
            )
        )
