"""Recorded chains of the Cosmos SDK 0.53.8, whose blocks the application executes again."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any
from unittest.mock import patch

from flask_noderpc.backends.base.application import BlockRequest
from flask_noderpc.cosmos.bank import Bank, messages
from flask_noderpc.cosmos.bank.consensus import block_info
from flask_noderpc.cosmos.bank.state import Branch, Committed
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.domain.abci import Event, ExecTxResult
from flask_noderpc.domain.block import (
    NO_BLOCK,
    BlockIDFlag,
    Commit,
    CommitSig,
    DuplicateVoteEvidence,
    Vote,
    VoteType,
)
from flask_noderpc.domain.time import from_text
from flask_noderpc.domain.validator import ValidatorSet
from flask_noderpc.protocol.comet.genesis import read_genesis
from flask_noderpc.testing.chains import DictState

from ...clients import record_gov, record_grants, record_modules, record_pool, record_vesting

Json = Any

PANIC = 111222
# Prefixes of keys that an exported genesis state does not have: unbonding IDs, historical
# information, and queues, which are only exported in part; and of keys that are not the SDK's.
NOT_EXPORTED = (
    *(b"staking/" + key for key in (b"7", b"8", b"9", b"A", b"B", b"C", b"P")),
    b"feegrant/\1",
    b"authz/\2",
)
OWN = (b"consensus/", b"head", b"old/", b"written/")


_RECORDINGS = {
    "main": record_modules.RECORDING,
    "grants": record_grants.RECORDING,
    "gov": record_gov.RECORDING,
    "vesting": record_vesting.RECORDING,
    "pool": record_pool.RECORDING,
}


@cache
def recorded(name: str = "main") -> Json:
    if name == "imported":
        return recorded()["imported"]
    return json.loads(gzip.decompress(_RECORDINGS[name].read_bytes()))


class Chain:
    """An application that has executed the blocks of a recorded chain."""

    def __init__(self, recorded: Json) -> None:
        # The account that may do what only governance may do otherwise.
        self.governor = recorded.get("governor")
        self.state = DictState()
        self.app = Bank(self.state, retained_heights=1_000)
        document = json.dumps(recorded["genesis"]).encode()
        init = self.app.init_chain(read_genesis(document, 0))
        self.validators = init.validators
        self.state.apply(init.changes)

    def execute(self, block: Json) -> None:
        """Execute a block, and compare it with the recorded one."""
        request = requested(block)
        votes = block_info(Branch(Committed(self.state)), request).votes
        found = [(each.address.hex().upper(), each.power, each.is_missing) for each in votes]
        assert found == [
            (address.upper(), power, flag == BlockIDFlag.ABSENT)
            for address, power, flag in block["votes"]
        ]
        with self._governed():
            done = self.app.finalize_block(request)
        assert shown((*done.begin_events, *done.end_events)) == block["events"]
        for result, tx in zip(done.tx_results, block["txs"], strict=True):
            assert described(result) == expected(tx["deliver"]), tx["name"]
        assert updates(done.validator_updates) == updates_of(block["validator_updates"])
        self.state.apply(done.changes)
        self.app.commit(block["height"])

    def _governed(self) -> AbstractContextManager[object]:
        if self.governor is None:
            return nullcontext()
        _, address = bech32.decode(self.governor)
        return patch.object(messages, "module_address", lambda name: address)

    def exported(self) -> Mapping[bytes, bytes]:
        """Return the state without what an exported genesis state does not have."""
        return {
            key: value
            for key, value in self.state.items()
            if not key.startswith((*NOT_EXPORTED, *OWN))
            # A chunk without missed blocks is not exported.
            and not (key.startswith(b"slashing/\2") and not any(value[8:]))
        }


def requested(block: Json) -> BlockRequest:
    signatures = tuple(
        CommitSig(flag, bytes.fromhex(address) if flag != BlockIDFlag.ABSENT else b"")
        for address, _, flag in block["votes"]
    )
    return BlockRequest(
        height=block["height"],
        time=from_text(block["time"]),
        txs=tuple(b64decode(tx["bytes"]) for tx in block["txs"]),
        evidence=tuple(map(evidence, block["misbehavior"])),
        proposer_address=bytes.fromhex(block["proposer_address"]),
        hash=b"",
        last_commit=Commit(block["height"] - 1, 0, NO_BLOCK, signatures),
        validators=ValidatorSet(),
        next_validators=ValidatorSet(),
    )


def evidence(given: Json) -> DuplicateVoteEvidence:
    address, height = bytes.fromhex(given["address"]), int(given["height"])
    vote = Vote(VoteType.PRECOMMIT, height, 0, NO_BLOCK, 0, address, 0)
    powers = int(given["total_power"]), int(given["power"])
    return DuplicateVoteEvidence(vote, vote, *powers, from_text(given["time"]))


def shown(events: Iterable[Event]) -> list[Json]:
    return [
        {
            "type": event.type,
            "attributes": [
                {"key": a.key.decode(), "value": a.value.decode(), "index": a.index}
                for a in event.attributes
            ],
        }
        for event in events
    ]


def described(result: ExecTxResult) -> Json:
    # The SDK's log of a panic contains the stack.
    log = result.log if result.code != PANIC else ""
    return {
        "code": result.code,
        "codespace": result.codespace,
        "log": log,
        "data": result.data,
        "gas": (result.gas_wanted, result.gas_used),
        "events": shown(result.events),
    }


def expected(given: Json) -> Json:
    return {
        "code": given["code"],
        "codespace": given["codespace"],
        "log": given["log"] if given["code"] != PANIC else "",
        "data": b64decode(given["data"] or ""),
        "gas": (given["gas_wanted"], given["gas_used"]),
        "events": given["events"],
    }


def updates(given: Iterable[Any]) -> dict[bytes, int]:
    return {each.pub_key.value: each.power for each in given}


def updates_of(given: Json) -> dict[bytes, int]:
    return {
        b64decode(each["pub_key"]["Sum"]["value"]["ed25519"]): int(each.get("power") or 0)
        for each in given or ()
    }


def states(chain: Json) -> Mapping[int, Json]:
    return {int(height): state for height, state in chain["states"].items()}
