"""Kill an EVM node and its executors with SIGKILL; blocks, receipts and state must agree."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from eth_account.signers.local import LocalAccount

from flask_noderpc import SQLiteBackend
from flask_noderpc.ethereum.protocol import accounts
from flask_noderpc.ethereum.state import EVM_STATE
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.protocol.secp256k1eth import keccak
from tests.ethereum.protocol.signing import ACCOUNT, OTHER, sender
from tests.ethereum.rpc.contracts import COUNTER
from tests.ethereum.rpc.evm_node import tx
from tests.helpers.until import PATIENCE, until

from ..helpers.http import call
from .processes import (
    Process,
    is_long,
    opened,
    processes,
)

MOMENTS = 100 if is_long() else 2
COUNTED = bytes.fromhex(COUNTER[2:])
Mined = dict[bytes, int]


class Refused(Exception):
    """An error response."""


def ask(url: str, method: str, *params: Any) -> Any:
    reply = call(f"{url}/evm", method, params, timeout=2 * PATIENCE).raise_for_status().json
    if "error" in reply:
        raise Refused(reply["error"]["message"])
    return reply["result"]


class Clients:
    """Accounts that call the counter repeatedly, and the transactions that were reported as
    mined."""

    def __init__(self, url: str) -> None:
        self.mined: Mined = {}
        self.lost_calls = 0
        self.failures: list[Exception] = []
        self._url = url
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._send, args=(account,)) for account in (ACCOUNT, OTHER)
        ]
        for thread in self._threads:
            thread.start()

    def _send(self, account: LocalAccount) -> None:
        try:
            nonce = self._number("eth_getTransactionCount", account.address, "pending")
            while not self._stopped.is_set():
                raw = tx(nonce, account, to=COUNTER, gas=60_000, value=0)
                receipt = self._receipt(raw)
                assert receipt["status"] == "0x1", receipt
                self.mined[raw] = int(receipt["blockNumber"], 16)
                self._call()
                nonce += 1
        except (OSError, HTTPException):
            # The node is gone, perhaps during its response.
            return
        except (AssertionError, Refused) as error:
            self.failures.append(error)

    def _receipt(self, raw: bytes) -> Any:
        try:
            return ask(self._url, "eth_sendRawTransactionSync", f"0x{raw.hex()}", hex(60_000))
        except Refused as error:
            # On a busy machine a minute may be too short.
            if "wasn't processed in time" not in str(error):
                raise
        sent = f"0x{keccak(raw).hex()}"
        until(lambda: bool(ask(self._url, "eth_getTransactionReceipt", sent)), "it is mined")
        return ask(self._url, "eth_getTransactionReceipt", sent)

    def _number(self, method: str, *params: Any) -> int:
        return int(ask(self._url, method, *params), 16)

    def _call(self) -> None:
        try:
            assert self._number("eth_call", {"to": COUNTER}) > 1
        except Refused as error:
            # The executor was killed during the call.
            if "has ended" not in str(error):
                raise
            self.lost_calls += 1

    def wait_for_more(self, count: int) -> None:
        for expected in range(len(self.mined) + 1, len(self.mined) + count + 1):
            until(lambda: len(self.mined) >= expected or bool(self.failures), "one more")  # noqa: B023
            assert not self.failures

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(3 * PATIENCE)
            assert not thread.is_alive()


def children(pid: int) -> list[int]:
    """Return the PIDs of a node's executors."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check(database: Path, mined: Mined) -> None:
    with opened(database, "evm") as backend:
        latest = backend.reads.latest_height()
        assert backend.verify() == latest
        for raw, height in mined.items():
            found = backend.reads.tx(tx_hash(raw))
            assert (found.height, found.tx, found.result.code) == (height, raw, 0)
        ran = check_state(backend, latest)
        assert ran >= len(mined)


def check_state(backend: SQLiteBackend, latest: int) -> int:
    """Check that the contract has counted the calls at each height; return their number."""
    evm, ran = EVM_STATE.of(backend), 0
    assert backend.application.info().last_block_height == latest
    for height in range(1, latest + 1):
        results = backend.reads.results(height)
        root = evm.root(height)
        assert root == results.app_hash
        ran += sum(result.code == 0 for result in results.tx_results)
        storage = accounts.account(evm.record, root, COUNTED).storage_root
        assert accounts.storage(evm.record, storage, bytes(32)) == ran
        signers = (sender(ACCOUNT), sender(OTHER))
        assert ran == sum(accounts.account(evm.record, root, own).nonce for own in signers)
    return ran


def run_until_killed(node: Process, randomness: random.Random) -> Mined:
    url = node.wait_until_it_serves()
    clients = Clients(url)
    enough = randomness.randrange(1, 12)
    clients.wait_for_more(enough)
    threading.Event().wait(randomness.random() * 0.03)
    executors = children(node.pid)
    assert executors
    node.kill()
    clients.join()
    assert not clients.failures
    until(lambda: not any(map(lives, executors)), "its executors have ended")
    return clients.mined


def test_a_killed_node_has_every_transaction_it_answered_as_mined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    database = tmp_path / "chain.db"
    mined: Mined = {}
    with processes() as start:
        for _ in range(MOMENTS):
            node = start(database, 0.01, lease=0.2, application="evm")
            mined |= run_until_killed(node, randomness)
            if randomness.random() < 0.5:
                check(database, mined)
    check(database, mined)
    with capsys.disabled():
        print(f" [{MOMENTS} kills, {len(mined)} transactions, seed {seed}]", end=" ")


def test_killed_executors_cost_no_transaction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    database = tmp_path / "chain.db"
    with processes() as start:
        node = start(database, 0.01, lease=0.2, application="evm")
        clients = Clients(node.wait_until_it_serves())
        killed = 0
        for _ in range(MOMENTS):
            clients.wait_for_more(1)
            threading.Event().wait(randomness.random() * 0.03)
            for pid in children(node.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        clients.stop()
        assert node.stop() == 0
    assert not clients.failures
    check(database, clients.mined)
    with capsys.disabled():
        lost = clients.lost_calls
        mined = len(clients.mined)
        print(
            f" [{killed} kills, {mined} transactions, {lost} lost calls, seed {seed}]", end=" "
        )
