"""Compare the application with chains of the Cosmos SDK 0.53.8: valid transactions, 200 kinds
of invalid ones, and queries.

tests/clients/record_bank.py says how they were recorded. Codes, codespaces, logs, data, events
and gas of checks and of blocks are equal, and the accounts, balances and supply after them; so
are the responses to queries. Each difference is a row with its reason.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from typing import Any

import pytest

from flask_noderpc.backends.base.application import BlockRequest, Waiting
from flask_noderpc.cosmos.bank import Bank
from flask_noderpc.cosmos.bank.accounts import decode
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.domain.block import BlockID, Commit
from flask_noderpc.domain.time import from_text
from flask_noderpc.domain.validator import ValidatorSet
from flask_noderpc.protocol.comet.genesis import read_genesis
from flask_noderpc.testing.chains import DictState

from ...clients.record_bank import RECORDING
from .test_bank_recording import shown

_GO = "Go's protobuf has it with a no-break space or not, by chance of its build"
_MODE = "a sign mode that is refused here, whose signature the SDK would check"

# Members that differ in a scenario, with the reason.
DIFFERENCES = {
    "zeros": ({"log"}, _GO),
    "one byte too many": ({"log"}, _GO),
    "message with text that is not UTF-8": ({"log"}, "Go counts its bytes"),
    "message that is an account": ({"log"}, "the type is unknown here"),
    "sign mode textual": ({"log", "gas_used"}, _MODE),
    "sign mode direct aux": ({"log"}, _MODE),
    "sign mode of several keys": ({"log"}, "gogoproto's text of a group"),
}

_PATHS = "a path of the SDK's program, which no wallet asks for"
# The errors of these messages contain lines of the SDK's source.
REFUSED_SIMULATIONS = (
    "as a wallet, amount above the balance",
    "as a wallet, amount of zero",
    "as a wallet, fee above the balance",
    "as a wallet, unknown signer",
    "as a wallet, wrong sequence",
    "garbage",
    "unknown type",
    "without mode",
)
_SOURCE = "its text names the line of the source that the error is from"
_ALL = {"code", "codespace", "log", "value", "height"}

# Members that differ in a query, by its name, with the reason.
QUERY_DIFFERENCES = {
    "node status": (_ALL, "answered above the application"),
    "path /app": ({"log"}, _PATHS),
    "path /app/none": ({"log"}, _PATHS),
    "path /app/simulate": ({"code", "log"}, _PATHS),
    "path /app/version": ({"code", "log", "height"}, _PATHS),
    "path /p2p/filter/addr/127.0.0.1:1": ({"code", "codespace", "log"}, _PATHS),
    "path /p2p/filter/id/abc": ({"code", "codespace", "log"}, _PATHS),
    "path /p2p/none": ({"log"}, _PATHS),
    "path /store": ({"code", "codespace", "log"}, _PATHS),
    "path /store/bank": ({"code", "codespace", "log"}, _PATHS),
    "path /store/bank/none": ({"code", "codespace", "log"}, _PATHS),
    "path /store/bank/subspace": ({"code", "codespace", "log"}, _PATHS),
    "path /store/none/key": ({"code", "codespace", "log"}, _PATHS),
    "simulate by the application": ({"code", "log", "value", "height"}, _PATHS),
    "simulate garbage by the application": ({"code", "log"}, _PATHS),
    **{f"simulate {name}": ({"log"}, _SOURCE) for name in REFUSED_SIMULATIONS},
}


@pytest.fixture(scope="module")
def recording() -> Any:
    return json.loads(gzip.decompress(RECORDING.read_bytes()))


class Chain(DictState):
    """A state with the transactions that were accepted since the last block."""

    def __init__(self) -> None:
        super().__init__()
        self.accepted: list[bytes] = []

    def waiting(self, cursor: int = 0, limit: int = 1000) -> Waiting:
        stored = tuple(enumerate(self.accepted, 1))[cursor:]
        return Waiting(stored, (), len(self.accepted))


def differing(own: ExecTxResult, theirs: dict[str, Any]) -> set[str]:
    found = {
        "code": own.code,
        "codespace": own.codespace,
        "log": own.log,
        "info": own.info,
        "data": own.data,
        "gas_wanted": own.gas_wanted,
        "gas_used": own.gas_used,
        "events": shown(own.events),
    }
    recorded = {
        **theirs,
        "data": b64decode(theirs["data"] or ""),
        "events": theirs["events"] or [],
    }
    return {name for name, value in found.items() if value != recorded[name]}


def state_of(state: DictState) -> dict[str, Any]:
    """Return accounts' numbers and sequences, balances and supply, by their names."""
    accounts = [decode(value) for _, value in state.range(b"acc/\1", limit=1000)]
    balances: dict[str, dict[str, str]] = {}
    for key, value in state.range(b"bank/\2", limit=1000):
        size = key[6]
        owner = bech32.encode("cosmos", key[7 : 7 + size])
        balances.setdefault(owner, {})[key[7 + size :].decode()] = value.decode()
    supply = {key[6:].decode(): value.decode() for key, value in state.range(b"bank/\0")}
    numbers = {each.address: (str(each.number), str(each.sequence)) for each in accounts}
    return {"accounts": numbers, "balances": balances, "supply": supply}


def recorded_state(recorded: dict[str, Any]) -> dict[str, Any]:
    bases = [each.get("base_account", each) for each in recorded["accounts"]]
    numbers = {each["address"]: (each["account_number"], each["sequence"]) for each in bases}
    return {
        "accounts": numbers,
        "balances": {owner: held for owner, held in recorded["balances"].items() if held},
        "supply": recorded["supply"],
    }


def executed(app: Bank, state: Chain, block: Any) -> tuple[ExecTxResult, ...]:
    raw = tuple(b64decode(tx["bytes"]) for tx in block["txs"])
    commit, members = Commit(0, 0, BlockID()), ValidatorSet(())
    time = from_text(block["time"])
    execution = app.finalize_block(
        BlockRequest(block["height"], time, raw, (), b"", b"", commit, members, members)
    )
    state.apply(execution.changes)
    state.accepted = []
    return execution.tx_results


def test_transactions_have_the_results_of_the_sdk(recording: Any) -> None:
    genesis = read_genesis(json.dumps(recording["genesis"]).encode(), 0)
    found: dict[str, set[str]] = {}
    compared = 0
    for scenario in recording["scenarios"]:
        state = Chain()
        app = Bank(state)
        state.apply(app.init_chain(genesis).changes)
        names: set[str] = set()
        for block in scenario["blocks"]:
            raw = tuple(b64decode(tx["bytes"]) for tx in block["txs"])
            for tx, recorded in zip(raw, block["txs"], strict=True):
                check = app.check_tx(tx)
                names |= differing(check, recorded["check"])
                state.accepted += [] if check.code else [tx]
            results = executed(app, state, block)
            for own, recorded in zip(results, block["txs"], strict=True):
                names |= differing(own, recorded["deliver"])
                compared += 1
        if names:
            found[scenario["name"]] = names
        if scenario["name"] not in DIFFERENCES:
            assert state_of(state) == recorded_state(scenario["state"]), scenario["name"]

    assert found == {name: differs for name, (differs, _) in DIFFERENCES.items()}
    assert compared > 250


def test_queries_have_the_answers_of_the_sdk(recording: Any) -> None:
    state = Chain()
    app = Bank(state)
    genesis = read_genesis(json.dumps(recording["genesis"]).encode(), 0)
    state.apply(app.init_chain(genesis).changes)
    (scenario,) = (each for each in recording["scenarios"] if each["name"] == "queries")
    for block in scenario["blocks"]:
        executed(app, state, block)
    found: dict[str, set[str]] = {}
    for query in recording["queries"]:
        data = b64decode(query["data"] or "")
        own = app.query(query["path"], data, query["height"], query["prove"])
        theirs = query["reply"]
        recorded = {
            **theirs,
            "key": b64decode(theirs["key"] or ""),
            "value": b64decode(theirs["value"] or ""),
        }
        answered = {
            "code": own.code,
            "codespace": own.codespace,
            "log": own.log,
            "info": own.info,
            "index": own.index,
            "key": own.key or b"",
            "value": own.value or b"",
            "height": own.height,
        }
        differs = {name for name, value in answered.items() if value != recorded[name]}
        if differs:
            found[query["name"]] = differs

    assert found == {name: differs for name, (differs, _) in QUERY_DIFFERENCES.items()}
    assert len(recording["queries"]) > 280
