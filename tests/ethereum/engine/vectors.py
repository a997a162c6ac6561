"""State tests: one transaction each on a small state, with the root that it leads to.

``python -m tests.ethereum.engine.vectors FOLDER [FORK]`` runs the files of a folder. They have
the form of ethereum/tests and of execution-spec-tests.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask_noderpc.errors import InvalidTransaction
from flask_noderpc.ethereum.domain.execution import (
    NO_STORAGE,
    AccountOverride,
    EmittedLog,
    Environment,
    message_of,
)
from flask_noderpc.ethereum.domain.forks import FORKS
from flask_noderpc.ethereum.domain.records import (
    MIN_BLOB_FEE,
)
from flask_noderpc.ethereum.engine.evm import Evm
from flask_noderpc.ethereum.engine.jobs import check
from flask_noderpc.ethereum.protocol.rlp import Item, encode
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.protocol.secp256k1eth import keccak

NAMES = {"Merge": "paris", **{name.capitalize(): name for name in FORKS}}
_CHAIN_ID = 1


class Records(dict[bytes, bytes]):
    """Records that an engine wrote, and the hashes of blocks as geth's tests have them."""

    def record(self, digest: bytes) -> bytes | None:
        return self.get(digest)

    def block_hash(self, height: int) -> bytes | None:
        return keccak(str(height).encode())


@dataclass(frozen=True)
class Vector:
    """A transaction on a state by the rules of a fork, with what it leads to."""

    name: str
    fork: str
    env: dict[str, str]
    pre: dict[str, Any]
    tx: str
    root: str
    logs: str
    """Hash of the list of logs."""
    is_refused: bool


def vectors(folder: Path, fork: str = "") -> Iterator[Vector]:
    """Yield the vectors of all files below a folder; with a fork, only its own."""
    for path in sorted(folder.rglob("*.json")):
        if path.name == "index.json":
            continue
        for name, test in json.loads(path.read_text()).items():
            for key, posts in test["post"].items():
                own = NAMES.get(key, "")
                if own and fork in ("", own):
                    for index, post in enumerate(posts):
                        yield _vector(f"{path.stem}:{name}:{index}", own, test, post)


def _vector(name: str, fork: str, test: dict[str, Any], post: dict[str, Any]) -> Vector:
    refused = bool(post.get("expectException"))
    outcome = post["txbytes"], post["hash"], post["logs"], refused
    return Vector(name, fork, test["env"], test["pre"], *outcome)


def run(vector: Vector) -> str:
    """Return what is wrong; empty if the vector passes."""
    records = Records()
    world = Evm(records).world(NO_STORAGE)
    world.patch({_bytes(at): _account(each) for at, each in vector.pre.items()})
    change = world.commit()
    records |= change.written
    world, environment = Evm(records).world(change.root), _environment(vector)
    logs, reason = tuple[EmittedLog, ...](), ""
    try:
        tx = decode(_bytes(vector.tx))
        check(world, environment, tx, contracts_send=False)
        logs = world.run(environment, message_of(tx, environment.base_fee)).logs
    except InvalidTransaction as failure:
        reason = str(failure)
    if bool(reason) != vector.is_refused:
        return f"the transaction was refused: {reason}" if reason else "it was not refused"
    if world.root() != _bytes(vector.root):
        return "another state root"
    listed: list[Item] = [[log.address, list(log.topics), log.data] for log in logs]
    return "" if keccak(encode(listed)) == _bytes(vector.logs) else "other logs"


def _environment(vector: Vector) -> Environment:
    env, fork = vector.env, FORKS[vector.fork]
    blob_fee = MIN_BLOB_FEE
    if fork.blobs and "currentExcessBlobGas" in env:
        fraction = fork.blobs.base_fee_update_fraction
        blob_fee = _exponential(_int(env["currentExcessBlobGas"]), fraction)
    return Environment(
        chain_id=_CHAIN_ID,
        number=_int(env["currentNumber"]),
        timestamp=_int(env["currentTimestamp"]),
        coinbase=_bytes(env["currentCoinbase"]),
        gas_limit=_int(env["currentGasLimit"]),
        base_fee=_int(env.get("currentBaseFee", "0x0a")),
        prev_randao=_int(env.get("currentRandom", "0x0")).to_bytes(32),
        difficulty=_int(env.get("currentDifficulty", "0x0")),
        blob_base_fee=blob_fee,
        fork=fork,
        caps_tx_gas=True,
    )


def _exponential(numerator: int, denominator: int) -> int:
    """Return e to the power of a fraction, in integers (EIP-4844)."""
    index, total, term = 1, 0, denominator
    while term:
        total += term
        term = term * numerator // (denominator * index)
        index += 1
    return total // denominator


def _account(own: dict[str, Any]) -> AccountOverride:
    return AccountOverride(
        nonce=_int(own["nonce"]),
        balance=_int(own["balance"]),
        code=_bytes(own["code"]),
        state={
            _int(slot).to_bytes(32): _int(word).to_bytes(32)
            for slot, word in own["storage"].items()
        },
    )


def _int(text: str) -> int:
    return int(text, 16) if text != "0x" else 0


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def main(folder: str, fork: str = "") -> int:
    """Run the vectors of a folder; print failures and counts by fork."""
    passed, failed = Counter[str](), Counter[str]()
    for vector in vectors(Path(folder), fork):
        try:
            wrong = run(vector)
        except Exception as error:
            wrong = repr(error)
        if wrong:
            failed[vector.fork] += 1
            print(f"{vector.fork} {vector.name}: {wrong}"[:300])
        else:
            passed[vector.fork] += 1
    print(f"passed {dict(passed)}, failed {dict(failed)}")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
