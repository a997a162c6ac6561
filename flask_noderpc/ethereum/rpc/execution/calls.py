"""Handlers of ``eth_call``, ``eth_estimateGas`` and ``eth_createAccessList``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeVar

from ....errors import ExecutionTimedOut, ExecutorsBusy, InvalidTransaction
from ....jsonrpc.context import Context
from ....jsonrpc.params import Params, param
from ...dev_log import log_messages
from ...domain.execution import (
    NO_CODE,
    OUT_OF_GAS,
    UNCHANGED,
    BlockChanges,
    CallArgs,
    Environment,
    Message,
    Outcome,
    Overrides,
    environment_for_call,
)
from ...domain.forks import fork_at
from ...domain.records import BLOB, ZERO_ADDRESS, Header, Transaction
from ...engine.base import Job, reason
from ...engine.jobs import Call, Estimate, ListAccess
from ...protocol.accounts import account
from ...protocol.crypto import authority_of
from ...protocol.execution import created_address
from ...settings import EthereumSettings, caps_tx_gas
from ..codec import hex
from ..codec.call_objects import BlockOverride, CallObject, StateOverride
from ..codec.params import BlockId, ByHash, Height, Tag
from ..errors import REVERTED, TIMED_OUT, EvmError
from ..reader import chain_id_of, reader
from .state import evm_state, header_and_root, state_block

T = TypeVar("T")

# Gas of a transfer without data, which is the least that any transaction uses.
_MIN_GAS = 21_000


@dataclass(frozen=True, slots=True)
class AccessListParams(Params):
    """Parameters of ``eth_createAccessList``."""

    call: CallArgs = param(CallObject(), doc="Sender, recipient, value, data, gas and fees.")
    block: Height | ByHash = state_block()
    overrides: Overrides | None = param(
        StateOverride(), default=None, doc="Overrides of accounts."
    )


@dataclass(frozen=True, slots=True)
class CallParams(AccessListParams):
    """Parameters of ``eth_call``."""

    block_overrides: BlockChanges = param(
        BlockOverride(), default=UNCHANGED, doc="Overrides of the block's header."
    )


@dataclass(frozen=True, slots=True)
class EstimateParams(Params):
    """Parameters of ``eth_estimateGas``."""

    call: CallArgs = param(CallObject(), doc="Sender, recipient, value, data, gas and fees.")
    block: Height | ByHash | None = param(
        BlockId(),
        default=None,
        doc="Block whose state is used; when omitted the latest, on a development chain the"
        " pending block.",
    )
    overrides: Overrides | None = param(
        StateOverride(), default=None, doc="Overrides of accounts."
    )
    block_overrides: BlockChanges = param(
        BlockOverride(), default=UNCHANGED, doc="Overrides of the block's header."
    )

    def at_block(self, ctx: Context) -> CallParams:
        """Return the parameters with a block: an omitted one is the latest, as in geth, or on
        a development chain the pending one, as in anvil."""
        default = Tag.PENDING if ctx.settings.dev else Tag.LATEST
        block = default if self.block is None else self.block
        return CallParams(self.call, block, self.overrides, self.block_overrides)


def is_settled_estimate(ctx: Context, params: EstimateParams) -> bool:
    """Return true if the estimate uses the state after a stored block, without overrides."""
    return is_settled(ctx, params.at_block(ctx))


def is_settled(ctx: Context, params: CallParams | AccessListParams) -> bool:
    """Return true if the call uses the state after a stored block, without overrides."""
    return params.block is not Tag.PENDING and params.overrides is None


def call(ctx: Context, params: CallParams) -> bytes:
    """The data that a call returns."""
    outcome = run(ctx, prepare_call(ctx, params))
    log_messages("eth_call", outcome)
    raise_failure(outcome)
    return outcome.output


def estimate_gas(ctx: Context, params: EstimateParams) -> int:
    """The gas limit that a call needs, found by executing the call."""
    request = prepare_call(ctx, params.at_block(ctx), limit_by_block=True)
    if _only_moves_value(ctx, request):
        return _MIN_GAS
    outcome = run(
        ctx,
        Estimate(
            request.root,
            request.environment,
            request.message,
            request.overrides,
            request.pending,
        ),
    )
    log_messages("eth_estimateGas", outcome)
    if outcome.error.startswith(OUT_OF_GAS):
        # The call used up all the gas that its sender can pay for.
        raise EvmError(f"gas required exceeds allowance ({outcome.gas_used})")
    raise_failure(outcome)
    return outcome.gas_used


def _only_moves_value(ctx: Context, request: Call) -> bool:
    """Return true if the call executes no code and the sender can pay for value and gas."""
    message = request.message
    to, gas = message.to, message.gas
    has_more = message.data or message.access_list or message.authorizations or request.pending
    if to is None or has_more or message.type == BLOB or request.overrides or gas < _MIN_GAS:
        return False
    record = evm_state(ctx).record
    has_code = account(record, request.root, to).code_hash != NO_CODE
    balance = account(record, request.root, message.sender).balance
    affordable = message.value + gas * message.gas_price <= balance
    return affordable and not has_code and to not in request.environment.fork.addresses


def prepare_call(ctx: Context, params: CallParams, *, limit_by_block: bool = False) -> Call:
    """Return a call on the state after a block, with its gas limited to NODERPC_EVM_GAS_CAP;
    with ``limit_by_block``, omitted gas is the block's limit."""
    # Read pending transactions before the state, which has those that a block includes in
    # between.
    waiting = _pending(ctx, params.block)
    header, root = header_and_root(ctx, params.block)
    environment = environment_of(ctx, header, params.block_overrides)
    own, gas = ctx.settings.of(EthereumSettings), params.call.gas or 0
    cap = own.evm_gas_cap
    if limit_by_block:
        # geth: eth/gasestimator ignores a gas limit below 21,000.
        gas = gas if gas >= _MIN_GAS else environment.gas_limit
        max_gas = environment.fork.max_tx_gas
        if max_gas is not None and caps_tx_gas(ctx.settings):
            cap = min(cap, max_gas)
    message = message_of(ctx, params.call, environment, min(gas or cap, cap))
    environment = environment_for_call(message, params.call.max_fee_per_blob_gas, environment)
    environment = replace(environment, keeps_console=ctx.settings.dev)
    pairs = zip(waiting, accumulate(tx.gas for tx in waiting), strict=True)
    pending = tuple(tx.raw for tx, gas_so_far in pairs if gas_so_far <= environment.gas_limit)
    return Call(root, environment, message, params.overrides or {}, pending)


def _pending(ctx: Context, block: Height | ByHash) -> list[Transaction]:
    """Return the transactions that run before a call on the pending block of a development
    chain, which executes them as anvil and hardhat do."""
    if block is not Tag.PENDING or not ctx.settings.dev:
        return []
    return reader(ctx).pending_transactions()


def capped_call(
    ctx: Context, args: CallArgs, environment: Environment
) -> tuple[Environment, Message]:
    """Return the environment and the message of a call, with its gas limited to
    NODERPC_EVM_GAS_CAP."""
    cap = ctx.settings.of(EthereumSettings).evm_gas_cap
    message = message_of(ctx, args, environment, min(args.gas or cap, cap))
    return environment_for_call(message, args.max_fee_per_blob_gas, environment), message


def environment_of(
    ctx: Context, header: Header, changes: BlockChanges = UNCHANGED
) -> Environment:
    """Return the values of a block that EVM code can read, from its header and overrides; an
    overridden number also selects the fork."""
    own = ctx.settings.of(EthereumSettings)
    found = Environment(
        chain_id=chain_id_of(ctx, header.number),
        number=header.number,
        timestamp=header.timestamp,
        coinbase=header.miner or ZERO_ADDRESS,
        gas_limit=header.gas_limit,
        base_fee=header.base_fee or 0,
        code_size_limit=own.evm_code_size_limit,
        prev_randao=header.mix_hash,
        parent_hash=header.parent_hash,
        fork=fork_at(evm_state(ctx).forks(), changes.number or header.number),
    )
    return changes.apply_to(found)


def message_of(ctx: Context, args: CallArgs, environment: Environment, gas: int) -> Message:
    """Return the message to execute for a call; raise :exc:`.errors.EvmError` for a wrong
    chain ID or a fee below the base fee."""
    chain_id = environment.chain_id
    if args.chain_id is not None and args.chain_id != chain_id:
        raise EvmError(f"chainId does not match node's (have={args.chain_id}, want={chain_id})")
    price = args.price_at(environment.base_fee)
    if 0 < price < environment.base_fee:
        raise EvmError(
            "max fee per gas less than block base fee: address"
            f" {hex.data(args.sender or ZERO_ADDRESS)}, maxFeePerGas: {price},"
            f" baseFee: {environment.base_fee}"
        )
    return Message(
        sender=args.sender or ZERO_ADDRESS,
        to=args.to,
        nonce=None,
        gas=gas,
        gas_price=price,
        value=args.value or 0,
        data=args.data or b"",
        type=args.type,
        access_list=args.access_list or (),
        authorizations=args.authorizations or (),
        blob_versioned_hashes=args.blob_versioned_hashes or (),
    )


def run_job(ctx: Context, job: Job[T]) -> T:
    """Run a job on an executor and return its result; raise :exc:`.errors.EvmError` if all
    executors are busy."""
    try:
        return evm_state(ctx).run(job, ctx.client)
    except ExecutorsBusy as error:
        raise EvmError(error.text_with_hint, code=TIMED_OUT) from None


def run(ctx: Context, job: Job[T]) -> T:
    """Run a job and return its result; raise a timeout or an invalid call as
    :exc:`.errors.EvmError` with geth's text."""
    try:
        return run_job(ctx, job)
    except ExecutionTimedOut as error:
        seconds = f"{ctx.settings.of(EthereumSettings).evm_timeout:g}s"
        raise EvmError(f"execution aborted (timeout = {seconds}) ({error.hint})") from None
    except InvalidTransaction as error:
        gas = job.message.gas if isinstance(job, Call | ListAccess) else 0
        raise EvmError(f"err: {error} (supplied gas {gas})") from None


def raise_failure(outcome: Outcome) -> None:
    """Raise :exc:`.errors.EvmError` if the call failed."""
    if outcome.reverted:
        raise revert_error(outcome.output)
    if outcome.error:
        raise EvmError(outcome.error)


def revert_error(output: bytes) -> EvmError:
    """Return the error for a call that a contract reverted with the data ``output``."""
    why = reason(output)
    text = f"execution reverted: {why}" if why else "execution reverted"
    return EvmError(text, code=REVERTED, data=hex.data(output))


def create(ctx: Context, params: AccessListParams) -> dict[str, Any]:
    """The accounts and storage slots that a call accesses, and the gas that it uses."""
    request = prepare_call(ctx, CallParams(params.call, params.block, params.overrides))
    message = request.message
    nonce = params.call.nonce
    if nonce is None:
        override = request.overrides.get(message.sender)
        nonce = override.nonce if override else None
    if nonce is None:
        nonce = account(evm_state(ctx).record, request.root, message.sender).nonce
    # geth: internal/ethapi, AccessList, excludes addresses that every call accesses anyway.
    target = message.to or created_address(message.sender, nonce)
    authorities = filter(None, map(authority_of, message.authorizations))
    excluded = request.environment.fork.addresses | {message.sender, target, *authorities}
    entries, outcome = run(
        ctx, ListAccess(request.root, request.environment, message, excluded, request.overrides)
    )
    made: dict[str, Any] = {"accessList": entries}
    if outcome.error:
        made["error"] = outcome.error
    return made | {"gasUsed": outcome.gas_used}
