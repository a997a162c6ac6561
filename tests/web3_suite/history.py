"""Contracts, blocks and transactions that web3.py's tests look for, made over RPC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from web3 import Web3
from web3._utils.contract_sources.contract_data.emitter_contract import EMITTER_CONTRACT_DATA
from web3._utils.contract_sources.contract_data.math_contract import MATH_CONTRACT_DATA
from web3._utils.contract_sources.contract_data.offchain_lookup import OFFCHAIN_LOOKUP_DATA
from web3._utils.contract_sources.contract_data.panic_errors_contract import (
    PANIC_ERRORS_CONTRACT_DATA,
)
from web3._utils.contract_sources.contract_data.revert_contract import REVERT_CONTRACT_DATA
from web3._utils.contract_sources.contract_data.storage_contract import STORAGE_CONTRACT_DATA
from web3.types import Wei

_CONTRACTS: dict[str, dict[str, Any]] = {
    "math": MATH_CONTRACT_DATA,
    "emitter": EMITTER_CONTRACT_DATA,
    "revert": REVERT_CONTRACT_DATA,
    "storage": STORAGE_CONTRACT_DATA,
    "panic_errors": PANIC_ERRORS_CONTRACT_DATA,
    "offchain_lookup": OFFCHAIN_LOOKUP_DATA,
}

# A value of the emitter's enumeration.
_DOUBLE_WITH_INDEX = 9


@dataclass(frozen=True, slots=True)
class History:
    """Contracts and transactions on the chain."""

    contracts: dict[str, Any]
    deployment: str
    transfer: str
    logging: str
    empty_block: Any
    block_with_transfer: Any
    block_with_log: Any


def made(w3: Web3) -> History:
    """Make all of them; the chain's first log comes last."""
    account = w3.eth.accounts[0]
    receipts = {
        name: _settled(w3, w3.eth.contract(**data).constructor().transact({"from": account}))
        for name, data in _CONTRACTS.items()
    }
    contracts = {
        name: w3.eth.contract(address=receipts[name]["contractAddress"], abi=data["abi"])
        for name, data in _CONTRACTS.items()
    }
    # Upstream's genesis names a miner, who has a higher balance later.
    miner = w3.eth.get_block(0)["miner"]
    transfer = _settled(
        w3, w3.eth.send_transaction({"from": account, "to": miner, "value": Wei(1)})
    )
    emit = contracts["emitter"].functions.logDouble(_DOUBLE_WITH_INDEX, 12345, 54321)
    logged = _settled(w3, emit.transact({"from": account}))
    return History(
        contracts=contracts,
        deployment=receipts["math"]["transactionHash"].to_0x_hex(),
        transfer=transfer["transactionHash"].to_0x_hex(),
        logging=logged["transactionHash"].to_0x_hex(),
        empty_block=_empty_block(w3),
        block_with_transfer=w3.eth.get_block(transfer["blockHash"]),
        block_with_log=w3.eth.get_block(logged["blockHash"]),
    )


def _settled(w3: Web3, tx_hash: Any) -> Any:
    receipt = w3.eth.wait_for_transaction_receipt(tx_hash, poll_latency=0.05)
    assert receipt["status"] == 1
    return receipt


def _empty_block(w3: Web3) -> Any:
    """Return the first block, before any transaction was sent."""
    block = w3.eth.get_block(1)
    assert not block["transactions"]
    return block
