"""Route table of the development methods, with the names that anvil and hardhat use.

Only callers on this machine may call them, as they may only sign from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import starmap
from types import NoneType
from typing import Any, NoReturn

from ....jsonrpc.context import Context
from ....jsonrpc.params import NoParams, Params, param
from ....jsonrpc.route import Route, RouteTable
from ...domain.records import PlainNumber
from ...protocol.blocks import Block
from ...protocol.execution import Receipt
from ..codec.params import Bool, Hash, String, Tag
from ..errors import NOT_SUPPORTED, EvmError
from ..execution.sending import FillParams
from ..execution.state import UnreadParams, block_of, evm_state
from ..queries import fees, node
from ..reader import reader
from . import control, history, signing, state, tokens
from .control import (
    MineManyParams,
    MineParams,
    SecondsParams,
    SnapshotParams,
    SwitchParams,
    TransactionHashParams,
)
from .state import BalanceParams, CodeParams, NonceParams, StorageWordParams


def node_info(ctx: Context, params: NoParams) -> dict[str, Any]:
    """The latest block, hard fork, fees and chain ID, and the forked chain if there is one."""
    header, fork = _latest(ctx).header, evm_state(ctx).fork
    return {
        "currentBlockNumber": header.number,
        "currentBlockTimestamp": PlainNumber(header.timestamp),
        "currentBlockHash": header.hash,
        "hardFork": "prague",
        "transactionOrder": "fees",
        "environment": {
            "baseFee": fees.base_fee(ctx, params),
            "chainId": PlainNumber(node.chain_id(ctx, params)),
            "gasLimit": header.gas_limit,
            "gasPrice": fees.gas_price(ctx, params),
        },
        "forkConfig": {
            "forkUrl": fork.nodes if fork else None,
            "forkBlockNumber": PlainNumber(fork.block.header.number) if fork else None,
            "forkRetryBackoff": None,
            "isProven": fork.block.is_proven if fork else None,
        },
    }


def genesis_time(ctx: Context, params: NoParams) -> PlainNumber:
    """Time of the genesis, or of the block of the fork, in seconds since 1970."""
    first = reader(ctx).genesis()
    return PlainNumber(first.header.timestamp if first else 0)


def metadata(ctx: Context, params: NoParams) -> dict[str, Any]:
    """Client version, chain ID and latest block; the instance ID is the hash of block 0."""
    header, fork = _latest(ctx).header, evm_state(ctx).fork
    genesis = reader(ctx).genesis()
    return {
        "clientVersion": node.client_version(ctx, params),
        "chainId": PlainNumber(node.chain_id(ctx, params)),
        "instanceId": genesis.header.hash if genesis else header.hash,
        "latestBlockNumber": PlainNumber(header.number),
        "latestBlockHash": header.hash,
        "forkedNetwork": fork
        and {
            "chainId": PlainNumber(fork.block.chain_id),
            "forkBlockNumber": PlainNumber(fork.block.header.number),
            "forkBlockHash": fork.block.header.hash,
            "isProven": fork.block.is_proven,
        },
        "snapshots": {},
    }


def _latest(ctx: Context) -> Block:
    return block_of(ctx, Tag.LATEST)


_REASONS = (
    (
        ("setMinGasPrice",),
        "the base fee is the minimum (EIP-1559); set it with setNextBlockBaseFeePerGas",
    ),
)


def _reasons() -> Iterator[tuple[str, str]]:
    for names, reason in _REASONS:
        for name in names:
            yield f"anvil_{name}", reason
            yield f"hardhat_{name}", reason


REASONS: Mapping[str, str] = dict(_reasons())
"""Reasons why methods of anvil and hardhat are not supported, by method name."""


def refusal_handler(name: str) -> Callable[[Context, UnreadParams], NoReturn]:
    """Return a handler that refuses a method with its reason."""

    def refuse(ctx: Context, params: UnreadParams) -> NoReturn:
        """Refused: the method is not supported on this chain."""
        raise EvmError(f"{name} is not supported: {REASONS[name]}", code=NOT_SUPPORTED)

    return refuse


@dataclass(frozen=True, slots=True)
class LoggingParams(Params):
    """Parameters of ``anvil_setLoggingEnabled``."""

    on: bool = param(Bool(), doc="Ignored: the app configures its logging.")


def accept_logging(ctx: Context, params: LoggingParams) -> None:
    """Accepted without effect: the app configures its logging."""


@dataclass(frozen=True, slots=True)
class UrlParams(Params):
    """Parameters of ``anvil_setRpcUrl``."""

    url: str = param(String(), doc="Ignored: NODERPC_FORK_URL names the nodes.")


def accept_url(ctx: Context, params: UrlParams) -> None:
    """Accepted without effect, as by an anvil that does not fork another chain."""


@dataclass(frozen=True, slots=True)
class HashParams(Params):
    """Parameters of methods about blobs."""

    hash: bytes = param(Hash(), doc="Hash of a transaction or of a blob.")


def blobs(ctx: Context, params: HashParams) -> None:
    """Always null: blobs are checked but not stored."""


_Call = Callable[[Context, Any], Any]
_Row = tuple[str, _Call, type, type]
"""Method name, handler, type of its parameters and type of its result."""


def _as_hardhat(call: _Call) -> _Call:
    """Return a handler that does the same as anvil's, and returns true instead of null."""

    def answer(ctx: Context, params: Any) -> bool:
        call(ctx, params)
        return True

    answer.__doc__ = call.__doc__
    return answer


def _rows_of_both(name: str, call: _Call, params: type) -> Iterator[_Row]:
    """Yield a method's rows under ``hardhat_``, which returns true, and ``anvil_``, which
    returns null."""
    yield f"hardhat_{name}", _as_hardhat(call), params, bool
    yield f"anvil_{name}", call, params, NoneType


_ROWS: tuple[_Row, ...] = (
    ("evm_mine", control.mine, MineParams, str),
    ("anvil_evmMine", control.mine, MineParams, str),
    ("evm_mine_detailed", control.mine_detailed, MineParams, tuple),
    ("anvil_mine_detailed", control.mine_detailed, MineParams, tuple),
    *_rows_of_both("mine", control.mine_many, MineManyParams),
    ("evm_snapshot", control.snapshot, NoParams, int),
    ("anvil_snapshot", control.snapshot, NoParams, int),
    ("evm_revert", control.revert, SnapshotParams, bool),
    ("anvil_revert", control.revert, SnapshotParams, bool),
    *_rows_of_both("reset", control.reset, control.Reset),
    ("anvil_rollback", history.rollback, history.RollbackParams, NoneType),
    ("anvil_reorg", history.reorg, history.ReorgParams, NoneType),
    ("evm_increaseTime", control.increase_time, SecondsParams, PlainNumber),
    ("anvil_increaseTime", control.increase_time, SecondsParams, PlainNumber),
    ("evm_setTime", control.set_time, SecondsParams, PlainNumber),
    ("anvil_setTime", control.set_time, SecondsParams, PlainNumber),
    ("evm_setNextBlockTimestamp", control.set_next_time, SecondsParams, NoneType),
    ("anvil_setNextBlockTimestamp", control.set_next_time, SecondsParams, NoneType),
    ("evm_setAutomine", control.set_automine, SwitchParams, NoneType),
    ("anvil_setAutomine", control.set_automine, SwitchParams, NoneType),
    ("hardhat_getAutomine", control.automine, NoParams, bool),
    ("anvil_getAutomine", control.automine, NoParams, bool),
    ("evm_setIntervalMining", control.set_interval, SecondsParams, NoneType),
    ("anvil_setIntervalMining", control.set_interval_s, SecondsParams, NoneType),
    ("anvil_getIntervalMining", control.interval, NoParams, PlainNumber),
    ("anvil_setBlockTimestampInterval", control.set_step, SecondsParams, NoneType),
    ("anvil_removeBlockTimestampInterval", control.remove_step, NoParams, bool),
    *_rows_of_both("setBalance", state.set_balance, BalanceParams),
    ("tenderly_setBalance", state.set_balance, BalanceParams, NoneType),
    ("anvil_dealERC20", tokens.deal, tokens.DealParams, NoneType),
    ("anvil_setERC20Balance", tokens.deal, tokens.DealParams, NoneType),
    ("hardhat_dealERC20", tokens.deal, tokens.DealParams, NoneType),
    ("anvil_setERC20Allowance", tokens.set_allowance, tokens.AllowanceParams, NoneType),
    ("anvil_addBalance", state.add_balance, BalanceParams, NoneType),
    ("hardhat_addBalance", state.add_balance, BalanceParams, NoneType),
    ("tenderly_addBalance", state.add_balance, BalanceParams, NoneType),
    *_rows_of_both("setNonce", state.set_nonce, NonceParams),
    ("evm_setAccountNonce", state.set_nonce, NonceParams, NoneType),
    *_rows_of_both("setCode", state.set_code, CodeParams),
    ("hardhat_setStorageAt", state.set_storage_at, StorageWordParams, bool),
    ("anvil_setStorageAt", state.set_storage_at, StorageWordParams, bool),
    *_rows_of_both("setNextBlockBaseFeePerGas", control.set_base_fee, control.FeeParams),
    *_rows_of_both("setCoinbase", control.set_coinbase, control.CoinbaseParams),
    ("hardhat_setPrevRandao", _as_hardhat(control.set_prev_randao), control.RandaoParams, bool),
    ("anvil_setNextBlockPrevRandao", control.set_prev_randao, control.RandaoParams, NoneType),
    ("anvil_setChainId", control.set_chain_id, control.ChainIdParams, NoneType),
    ("anvil_dumpState", state.dump, NoParams, bytes),
    ("hardhat_dumpState", state.dump, NoParams, bytes),
    ("anvil_loadState", state.load, state.DumpParams, bool),
    ("hardhat_loadState", state.load, state.DumpParams, bool),
    ("evm_setBlockGasLimit", control.set_gas_limit, control.GasLimitParams, bool),
    ("anvil_setBlockGasLimit", control.set_gas_limit, control.GasLimitParams, bool),
    ("hardhat_dropTransaction", control.was_dropped, TransactionHashParams, bool),
    ("anvil_dropTransaction", control.drop, TransactionHashParams, bytes),
    *_rows_of_both("dropAllTransactions", control.drop_all, NoParams),
    ("anvil_removePoolTransactions", control.drop_by_sender, control.SenderParams, NoneType),
    *_rows_of_both("setLoggingEnabled", accept_logging, LoggingParams),
    ("anvil_setRpcUrl", accept_url, UrlParams, NoneType),
    ("anvil_getBlobsByTransactionHash", blobs, HashParams, NoneType),
    ("anvil_getBlobByHash", blobs, HashParams, NoneType),
    ("anvil_getGenesisTime", genesis_time, NoParams, PlainNumber),
    ("anvil_nodeInfo", node_info, NoParams, dict),
    ("hardhat_metadata", metadata, NoParams, dict),
    ("anvil_metadata", metadata, NoParams, dict),
)


def _row(
    name: str, call: _Call, params: type, result: type, tag: str = "Signing"
) -> Route[Any]:
    return Route(name, call, params, result, writes=True, signs=True, tag=tag)


def _rows() -> Iterator[Route[Any]]:
    for row in _ROWS:
        yield _row(*row, tag="Development")
    for name in REASONS:
        yield _row(name, refusal_handler(name), UnreadParams, str, tag="Refused")


CONTROL_ROUTES = tuple(_rows())


DEV_ROUTES = RouteTable(
    (
        _row("eth_sendTransaction", signing.send, FillParams, bytes),
        _row("eth_sendTransactionSync", signing.send_sync, FillParams, Receipt),
        _row("eth_sendUnsignedTransaction", signing.send_unsigned, FillParams, bytes),
        _row("eth_signTransaction", signing.sign_transaction, FillParams, dict),
        _row("eth_requestAccounts", signing.accounts, NoParams, tuple),
        _row("eth_sign", signing.sign, signing.Message, bytes),
        _row("personal_sign", signing.personal_sign, signing.PersonalMessage, bytes),
        _row("eth_signTypedData", signing.sign_typed_data, signing.TypedDataParams, bytes),
        _row("eth_signTypedData_v3", signing.sign_typed_data, signing.TypedDataParams, bytes),
        _row("eth_signTypedData_v4", signing.sign_typed_data, signing.TypedDataParams, bytes),
        *starmap(
            _row,
            (
                *_rows_of_both("impersonateAccount", signing.impersonate, signing.Name),
                *_rows_of_both(
                    "stopImpersonatingAccount", signing.stop_impersonating, signing.Name
                ),
            ),
        ),
        *starmap(
            _row,
            _rows_of_both(
                "autoImpersonateAccount", signing.impersonate_any, signing.SwitchParams
            ),
        ),
        *CONTROL_ROUTES,
    )
)
