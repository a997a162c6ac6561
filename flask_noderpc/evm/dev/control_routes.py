"""Rows of the methods that drive a chain of tests, each under all its names.

Callers on this machine alone may use them, as they may have it sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...jsonrpc.params import NoParams
from ...jsonrpc.route import Route
from ..execution.unsupported import Unread
from . import accounts, blocks, dumps, refusals
from . import control as does
from . import info as dev_info
from .accounts import OfBalance, OfCode, OfNonce, OfWord
from .control import Mine, MineMany, OfSnapshot, OfWaiting, Seconds, Switch

_ROWS = (
    (("evm_mine", "anvil_evmMine"), does.mine, Mine, str),
    (("hardhat_mine", "anvil_mine"), does.mine_many, MineMany, bool),
    (("evm_snapshot", "anvil_snapshot"), does.snapshot, NoParams, int),
    (("evm_revert", "anvil_revert"), does.revert, OfSnapshot, bool),
    (("hardhat_reset", "anvil_reset"), does.reset, does.Reset, bool),
    (("evm_increaseTime", "anvil_increaseTime"), does.increase_time, Seconds, int),
    (("evm_setTime", "anvil_setTime"), does.set_time, Seconds, int),
    (
        ("evm_setNextBlockTimestamp", "anvil_setNextBlockTimestamp"),
        does.set_next_time,
        Seconds,
        str,
    ),
    (("evm_setAutomine", "anvil_setAutomine"), does.set_automine, Switch, bool),
    (("hardhat_getAutomine", "anvil_getAutomine"), does.automine, NoParams, bool),
    (("evm_setIntervalMining",), does.set_interval, Seconds, bool),
    (("anvil_setIntervalMining",), does.set_interval_s, Seconds, bool),
    (("anvil_setBlockTimestampInterval",), does.set_step, Seconds, bool),
    (("anvil_removeBlockTimestampInterval",), does.remove_step, NoParams, bool),
    (("hardhat_setBalance", "anvil_setBalance"), accounts.set_balance, OfBalance, bool),
    (("anvil_addBalance",), accounts.add_balance, OfBalance, bool),
    (("hardhat_setNonce", "anvil_setNonce"), accounts.set_nonce, OfNonce, bool),
    (("hardhat_setCode", "anvil_setCode"), accounts.set_code, OfCode, bool),
    (("hardhat_setStorageAt", "anvil_setStorageAt"), accounts.set_storage_at, OfWord, bool),
    (
        ("hardhat_setNextBlockBaseFeePerGas", "anvil_setNextBlockBaseFeePerGas"),
        blocks.set_base_fee,
        blocks.OfFee,
        bool,
    ),
    (
        ("hardhat_setCoinbase", "anvil_setCoinbase"),
        blocks.set_coinbase,
        blocks.OfCoinbase,
        bool,
    ),
    (("anvil_dumpState",), dumps.dump, NoParams, bytes),
    (("anvil_loadState",), dumps.load, dumps.OfState, bool),
    (("evm_setBlockGasLimit",), blocks.set_gas_limit, blocks.OfLimit, bool),
    (("hardhat_dropTransaction", "anvil_dropTransaction"), does.drop, OfWaiting, bytes),
    (("anvil_dropAllTransactions",), does.drop_all, NoParams, bool),
    (("anvil_removePoolTransactions",), does.drop_of, does.OfSender, bool),
    (("anvil_nodeInfo",), dev_info.node_info, NoParams, dict),
    (("hardhat_metadata", "anvil_metadata"), dev_info.metadata, NoParams, dict),
)


def _rows() -> Iterator[Route[Any]]:
    for names, call, params, result in _ROWS:
        for name in names:
            yield Route(name, call, params, result, writes=True, signs=True)
    for name in refusals.REASONS:
        yield Route(name, refusals.refusing(name), Unread, str, writes=True, signs=True)


CONTROL_ROUTES = tuple(_rows())
