"""Rows of the methods that drive a chain of tests, each under all its names.

Callers on this machine alone may use them, as they may have it sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...jsonrpc.params import NoParams
from ...jsonrpc.route import Route
from ..execution.unsupported import UnreadParams
from . import accounts, blocks, control, dumps, refusals
from . import info as dev_info
from .accounts import BalanceParams, CodeParams, NonceParams, StorageWordParams
from .control import (
    MineManyParams,
    MineParams,
    SecondsParams,
    SnapshotParams,
    SwitchParams,
    TransactionHashParams,
)

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
    (("hardhat_setBalance", "anvil_setBalance"), accounts.set_balance, BalanceParams, bool),
    (("anvil_addBalance",), accounts.add_balance, BalanceParams, bool),
    (("hardhat_setNonce", "anvil_setNonce"), accounts.set_nonce, NonceParams, bool),
    (("hardhat_setCode", "anvil_setCode"), accounts.set_code, CodeParams, bool),
    (
        ("hardhat_setStorageAt", "anvil_setStorageAt"),
        accounts.set_storage_at,
        StorageWordParams,
        bool,
    ),
    (
        ("hardhat_setNextBlockBaseFeePerGas", "anvil_setNextBlockBaseFeePerGas"),
        blocks.set_base_fee,
        blocks.FeeParams,
        bool,
    ),
    (
        ("hardhat_setCoinbase", "anvil_setCoinbase"),
        blocks.set_coinbase,
        blocks.CoinbaseParams,
        bool,
    ),
    (("anvil_dumpState",), dumps.dump, NoParams, bytes),
    (("anvil_loadState",), dumps.load, dumps.DumpParams, bool),
    (("evm_setBlockGasLimit",), blocks.set_gas_limit, blocks.GasLimitParams, bool),
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
    for name in refusals.REASONS:
        yield Route(name, refusals.refusing(name), UnreadParams, str, writes=True, signs=True)


CONTROL_ROUTES = tuple(_rows())
