"""Use a development node with eth-ape, and print a line for each step."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ape
from ape.contracts import ContractContainer
from ethpm_types import ContractType

ETHER = 10**18
STRANGER = "0x" + "88" * 20


def step(name: str, shown: Any) -> None:
    """Print the result of a step."""
    print(json.dumps({"step": name, "shown": shown}), flush=True)


def next_of(poll: Callable[[], Any], cause: Callable[[], Any]) -> Any:
    """Repeat a cause until a poll finds its effect; return what the poll found."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(next(poll())), daemon=True)
    thread.start()
    # A poll only sees later events, and it does not report when it begins.
    while thread.is_alive():
        cause()
        thread.join(0.5)
    return found[0]


def contracts(account: Any, container: Any) -> Any:
    """Deploy a contract, and call it."""
    contract = account.deploy(container, 7)
    receipt = contract.add(5, sender=account)
    step("call", contract.total())
    step("events of a receipt", [event.total for event in receipt.events])
    step("return value", receipt.return_value)
    step("call tree", str(receipt.trace.get_calltree()).splitlines()[0].partition(" ")[0])
    step("logs", [event.amount for event in contract.Added])
    for name, expected, amount in (
        ("reason", "nothing to add", 0),
        ("custom error", contract.TooMuch, 2000),
    ):
        with ape.reverts(expected):
            contract.add(amount, sender=account)
        step(name, True)
    for kind in (0, 1, 2):
        price = {} if kind == 2 else {"gas_price": 10**10}
        step(f"type {kind}", contract.add(1, sender=account, type=kind, **price).status)
    return contract


def chain(account: Any, contract: Any) -> None:
    """Mine blocks, and poll them."""
    blocks = ape.chain.blocks
    before = blocks.height
    snapshot = ape.chain.snapshot()
    contract.add(1, sender=account)
    ape.chain.restore(snapshot)
    step("restore", blocks.height - before)
    with ape.chain.isolate():
        contract.add(1, sender=account)
    step("isolate", blocks.height - before)
    ape.chain.mine(3)
    step("mine", blocks.height - before)
    time = blocks.head.timestamp + 1000
    ape.chain.mine(1, timestamp=time)
    step("mine at a time", blocks.head.timestamp - time)
    ape.chain.set_balance(STRANGER, ETHER)
    step("set_balance", ape.chain.provider.get_balance(STRANGER))
    step("impersonate", contract.add(2, sender=ape.accounts[STRANGER]).status)
    step("history", len(list(account.history)) > 0)

    def send() -> None:
        contract.add(3, sender=account)

    log = next_of(lambda: contract.Added.poll_logs(start_block=blocks.height + 1), send)
    step("poll of logs", log.amount)
    first = blocks.height + 1
    block = next_of(lambda: blocks.poll_blocks(start_block=first), ape.chain.mine)
    # The poll may begin after the first block was mined.
    step("poll of blocks", block.number >= first)


def main() -> None:
    """Run the steps with the node of ``APE_FOUNDRY_HOST``."""
    counter = json.loads(Path(sys.argv[1]).read_text())
    kind = {"abi": counter["abi"], "deploymentBytecode": {"bytecode": counter["bytecode"]}}
    container = ContractContainer(
        ContractType.model_validate({"contractName": "Counter", **kind})
    )
    with ape.networks.parse_network_choice("ethereum:local:foundry"):
        account, other = ape.accounts.test_accounts[8], ape.accounts.test_accounts[9]
        balance = other.balance
        account.transfer(other, ETHER)
        step("transfer", other.balance - balance)
        chain(account, contracts(account, container))
    step("end", True)


if __name__ == "__main__":
    main()
