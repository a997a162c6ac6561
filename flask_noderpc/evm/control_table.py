"""Rows of the methods that drive a chain of tests, each under all its names.

Callers on this machine alone may use them, as they may have it sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..rpc.params import NoParams
from ..rpc.route import Route
from . import control_methods as does
from .control_methods import Mine, MineMany, OfSnapshot, OfWaiting, Seconds, Switch

_ROWS = (
    (("evm_mine", "anvil_evmMine"), does.mine, Mine, str),
    (("hardhat_mine", "anvil_mine"), does.mine_many, MineMany, bool),
    (("evm_snapshot", "anvil_snapshot"), does.snapshot, NoParams, int),
    (("evm_revert", "anvil_revert"), does.revert, OfSnapshot, bool),
    (("hardhat_reset", "anvil_reset"), does.reset, Mine, bool),
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
    (("evm_setIntervalMining",), does.set_interval_ms, Seconds, bool),
    (("anvil_setIntervalMining",), does.set_interval_s, Seconds, bool),
    (("hardhat_setBalance", "anvil_setBalance"), does.set_balance, does.OfBalance, bool),
    (("hardhat_setNonce", "anvil_setNonce"), does.set_nonce, does.OfNonce, bool),
    (("hardhat_setCode", "anvil_setCode"), does.set_code, does.OfCode, bool),
    (("hardhat_setStorageAt", "anvil_setStorageAt"), does.set_storage_at, does.OfWord, bool),
    (("hardhat_dropTransaction", "anvil_dropTransaction"), does.drop, OfWaiting, bytes),
    (("anvil_dropAllTransactions",), does.drop_all, NoParams, bool),
)


def _rows() -> Iterator[Route[Any]]:
    for names, call, params, result in _ROWS:
        for name in names:
            yield Route(name, call, params, result, writes=True, signs=True)


CONTROL_ROUTES = tuple(_rows())
