"""Execute the transactions of a recorded chain of the Cosmos SDK 0.53.8 again.

That chain mints and has delegations, which the application does not have. Transactions that
need neither have the same codes, logs, data and events, and the same gas except for the length
of minted balances.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import pytest

from flask_noderpc.cosmos.bank import Bank
from flask_noderpc.domain.abci import Event
from flask_noderpc.protocol.comet.genesis import read_genesis
from flask_noderpc.testing.chains import DictState

from ...clients.sdk_chain import RECORDING
from ...companion.recording import Recording
from .test_bank import run_block

# The sixth transaction delegates and is refused, so the sequence of the seventh is one too
# high.
HEIGHTS = (7, 8, 9, 10, 13)
_MINTED_DIGITS = 50


@pytest.fixture(scope="module")
def recording() -> Recording:
    return Recording.read(RECORDING)


def result(recording: Recording, path: str) -> Any:
    _, text = recording.paths[path]
    return json.loads(text)["result"]


def shown(events: Sequence[Event]) -> list[Any]:
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


def test_transfers_have_the_results_of_the_sdk(recording: Recording) -> None:
    genesis = json.dumps(result(recording, "/genesis")["genesis"]).encode()
    state = DictState()
    app = Bank(state)
    state.apply(app.init_chain(read_genesis(genesis, 0)).changes)
    for height in HEIGHTS:
        block = result(recording, f"/block?height={height}")["block"]
        txs = [b64decode(tx) for tx in block["data"]["txs"]]
        found = run_block(app, state, height, *txs)
        recorded = result(recording, f"/block_results?height={height}")["txs_results"]
        for own, theirs in zip(found, recorded, strict=True):
            assert (own.code, own.codespace) == (theirs["code"], theirs["codespace"])
            assert own.data == b64decode(theirs["data"] or "")
            assert shown(own.events) == theirs["events"]
            assert own.gas_wanted == int(theirs["gas_wanted"])
            assert abs(own.gas_used - int(theirs["gas_used"])) <= _MINTED_DIGITS
            if own.code == 0:
                assert own.log == theirs["log"]
