"""Compare the gateway with the Cosmos SDK's (0.53.8), over HTTP.

tests/clients/record_bank_rest.py says how the SDK's replies were recorded. Status, type and
text of each reply are equal, except for values that belong to one chain. Each other difference
is a row with its reason.
"""

from __future__ import annotations

import re
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import Client

from tests.cosmos.bank.test_bank_sdk import REFUSED_SIMULATIONS

# Values that belong to one chain: block times, hashes over them, and the root of its state.
_OWN = re.compile(r'"(time|timestamp|hash|last_commit_hash|app_hash|signature)":("[^"]*"|null)')
_LINE = re.compile(r" \[\S+\.go:\d+\]")

_BASE = "/cosmos/base/tendermint/v1beta1"
_SOURCE = "its text names the line of the source that the error is from"

# Requests whose replies differ, by name, with the reason.
DIFFERENCES = {
    f"{_BASE}/node_info": "another program, and a node of its own",
    f"{_BASE}/abci_query?path=/app/version": "a path of the SDK's program, unknown here",
    "send one of an old sequence": "the node has it in its cache; the SDK's had been restarted",
    **{f"simulate {name}": _SOURCE for name in REFUSED_SIMULATIONS},
}

# Requests of the same services by abci_query whose replies differ, with the reason.
QUERY_DIFFERENCES = {
    "broadcast": "no query, and unknown as others",
}


_LONG = 250


def _shown(text: str) -> str:
    return _OWN.sub(r'"\1":…', text)


def _difference(rest: Client, recorded: dict[str, Any]) -> str:
    """Return a reason if the difference is the known one, ``other`` for another one, or an
    empty string."""
    body = recorded["body"]
    reply = rest.open(
        recorded["path"],
        method=recorded["method"],
        data=body or None,
        content_type="application/json" if body else None,
    )
    assert reply.status_code == recorded["status"] or recorded["name"] in DIFFERENCES
    assert reply.content_type == recorded["type"]
    own, theirs = reply.get_data(as_text=True), recorded["reply"].rstrip("\n")
    if _shown(own) == _shown(theirs):
        return ""
    return _SOURCE if own == _LINE.sub("", theirs) else "other"


def test_each_reply_is_that_of_the_sdk(rest: Client, recording: dict[str, Any]) -> None:
    # Requests are sent in order, as a transaction must exist before it is queried.
    found = {each["name"]: _difference(rest, each) for each in recording["requests"]}

    different = {name: reason for name, reason in found.items() if reason}
    assert different == {
        name: reason if reason == _SOURCE else "other" for name, reason in DIFFERENCES.items()
    }
    assert len(recording["requests"]) > 300


def test_the_same_services_answer_by_abci_query(
    client: FlaskClient, recording: dict[str, Any]
) -> None:
    different = set()
    for each in recording["queries"]:
        params = {"path": each["path"], "data": each["data"]}
        body = {"jsonrpc": "2.0", "id": 1, "method": "abci_query", "params": params}
        own = client.post("/", json=body).get_json()["result"]["response"]
        theirs = each["reply"]
        if len(theirs["value"] or "") > _LONG:
            # The values contain times and hashes; the test of the REST responses compares the
            # other members.
            own, theirs = own | {"value": ""}, theirs | {"value": ""}
        if own != theirs:
            different.add(each["name"])

    assert different == set(QUERY_DIFFERENCES)
