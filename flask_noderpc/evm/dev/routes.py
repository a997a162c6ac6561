"""Rows of the development methods, each under all its names.

Callers on this machine alone may use them, as they may have it sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams
from ...jsonrpc.route import Route, RouteTable
from ..execution.sending import FillParams
from ..execution.state import UnreadParams
from . import control, info, signing, state
from . import info as dev_info
from .control import (
    MineManyParams,
    MineParams,
    SecondsParams,
    SnapshotParams,
    SwitchParams,
    TransactionHashParams,
)
from .state import BalanceParams, CodeParams, NonceParams, StorageWordParams

_ROWS = (
    (("evm_mine", "anvil_evmMine"), control.mine, MineParams, str),
    (("hardhat_mine", "anvil_mine"), control.mine_many, MineManyParams, bool),
    (("evm_snapshot", "anvil_snapshot"), control.snapshot, NoParams, int),
    (("evm_revert", "anvil_revert"), control.revert, SnapshotParams, bool),
    (("hardhat_reset", "anvil_reset"), control.reset, control.Reset, bool),
    (("evm_increaseTime", "anvil_increaseTime"), control.increase_time, SecondsParams, int),
    (("evm_setTime", "anvil_setTime"), control.set_time, SecondsParams, int),
    (
        ("evm_setNextBlockTimestamp", "anvil_setNextBlockTimestamp"),
        control.set_next_time,
        SecondsParams,
        str,
    ),
    (("evm_setAutomine", "anvil_setAutomine"), control.set_automine, SwitchParams, bool),
    (("hardhat_getAutomine", "anvil_getAutomine"), control.automine, NoParams, bool),
    (("evm_setIntervalMining",), control.set_interval, SecondsParams, bool),
    (("anvil_setIntervalMining",), control.set_interval_s, SecondsParams, bool),
    (("anvil_setBlockTimestampInterval",), control.set_step, SecondsParams, bool),
    (("anvil_removeBlockTimestampInterval",), control.remove_step, NoParams, bool),
    (("hardhat_setBalance", "anvil_setBalance"), state.set_balance, BalanceParams, bool),
    (("anvil_addBalance",), state.add_balance, BalanceParams, bool),
    (("hardhat_setNonce", "anvil_setNonce"), state.set_nonce, NonceParams, bool),
    (("hardhat_setCode", "anvil_setCode"), state.set_code, CodeParams, bool),
    (
        ("hardhat_setStorageAt", "anvil_setStorageAt"),
        state.set_storage_at,
        StorageWordParams,
        bool,
    ),
    (
        ("hardhat_setNextBlockBaseFeePerGas", "anvil_setNextBlockBaseFeePerGas"),
        control.set_base_fee,
        control.FeeParams,
        bool,
    ),
    (
        ("hardhat_setCoinbase", "anvil_setCoinbase"),
        control.set_coinbase,
        control.CoinbaseParams,
        bool,
    ),
    (("anvil_dumpState",), state.dump, NoParams, bytes),
    (("anvil_loadState",), state.load, state.DumpParams, bool),
    (("evm_setBlockGasLimit",), control.set_gas_limit, control.GasLimitParams, bool),
    (
        ("hardhat_dropTransaction", "anvil_dropTransaction"),
        control.drop,
        TransactionHashParams,
        bytes,
    ),
    (("anvil_dropAllTransactions",), control.drop_all, NoParams, bool),
    (("anvil_removePoolTransactions",), control.drop_of, control.SenderParams, bool),
    (("anvil_nodeInfo",), dev_info.node_info, NoParams, dict),
    (("hardhat_metadata", "anvil_metadata"), dev_info.metadata, NoParams, dict),
)


def _rows() -> Iterator[Route[Any]]:
    for names, call, params, result in _ROWS:
        for name in names:
            yield Route(name, call, params, result, writes=True, signs=True)
    for name in info.REASONS:
        yield Route(name, info.refusing(name), UnreadParams, str, writes=True, signs=True)


CONTROL_ROUTES = tuple(_rows())


def _row(
    name: str, call: Callable[[Context, Any], Any], params: type, result: type
) -> Route[Any]:
    return Route(name, call, params, result, writes=True, signs=True)


DEV_ROUTES = RouteTable(
    (
        _row("eth_sendTransaction", signing.send, FillParams, bytes),
        _row("eth_signTransaction", signing.sign_transaction, FillParams, dict),
        _row("eth_requestAccounts", signing.accounts, NoParams, tuple),
        _row("eth_sign", signing.sign, signing.Message, bytes),
        _row("personal_sign", signing.personal_sign, signing.PersonalMessage, bytes),
        _row("eth_signTypedData", signing.sign_typed_data, signing.Typed, bytes),
        _row("eth_signTypedData_v4", signing.sign_typed_data, signing.Typed, bytes),
        _row("anvil_impersonateAccount", signing.impersonate, signing.Name, bool),
        _row("hardhat_impersonateAccount", signing.impersonate, signing.Name, bool),
        _row("anvil_stopImpersonatingAccount", signing.stop_impersonating, signing.Name, bool),
        _row(
            "hardhat_stopImpersonatingAccount", signing.stop_impersonating, signing.Name, bool
        ),
        _row(
            "anvil_autoImpersonateAccount", signing.impersonate_any, signing.SwitchParams, bool
        ),
        *CONTROL_ROUTES,
    )
)
