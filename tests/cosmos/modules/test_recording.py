"""Execute the blocks of recorded chains of the Cosmos SDK 0.53.8 again.

The events, codes, logs, data and gas of all transactions, the events and the validators of all
blocks, the state and the responses to queries equal the SDK's. The exceptions are listed.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping

import pytest

from flask_noderpc.domain.abci import QueryResult
from flask_noderpc.protocol.protobuf import Message

from .playing import Chain, Json, recorded, states, updates, updates_of

# The place in the SDK's source at which a simulation failed.
PLACE = re.compile(r" \[\S+:\d+\]")
# The SDK calculates the end of a page with 64 bits; a filtered page ends one entry later.
CUT_OFF = re.compile(r"(unmarshal to legacytx\.StdTx failed).*")
OVERFLOW = re.compile(
    r'"offset":"18446744073709551615"|(AllowancesByGranter|GranteeGrants).*"limit":"18446744073709551615"'
)


@pytest.mark.parametrize("name", ["main", "imported", "grants", "gov", "vesting", "pool"])
def test_blocks_have_the_results_and_the_state_of_the_sdk(name: str) -> None:
    given = recorded(name)
    chain, known = Chain(given), states(given)
    assert updates(chain.validators) == updates_of(given["init"]["validators"])
    compared = 0
    for block in given["blocks"]:
        chain.execute(block)
        if exported := known.get(block["height"]):
            assert chain.exported() == imported(given["genesis"], exported["export"])
            compared += 1
    assert compared == len(known)


def imported(genesis: Json, exported: Json) -> Mapping[bytes, bytes]:
    """Return the state of a chain that begins with an exported state."""
    state = {**genesis["app_state"], **exported, "genutil": {}}
    return Chain({"genesis": {**genesis, "app_state": state}}).exported()


def test_the_recording_has_enough() -> None:
    txs = [tx for block in recorded()["blocks"] for tx in block["txs"]]
    failed = [tx["deliver"] for tx in txs if tx["deliver"]["code"]]
    assert len(recorded()["blocks"]) >= 200
    assert len(txs) - len(failed) >= 400
    assert len({(each["codespace"], each["code"]) for each in failed}) >= 35


def reply(result: QueryResult) -> Json:
    return result.code, result.codespace, result.log, result.value


def recorded_reply(given: Json) -> Json:
    value = b64decode(given["value"] or "")
    return given["code"], given["codespace"], given["log"], value


PATHS = sorted(
    {
        (name, each["path"])
        for name in ("main", "grants", "gov", "vesting", "pool")
        for each in recorded(name)["queries"]
        # The SDK has types that this chain does not have; test_pool.py lists them.
        if "ReflectionService" not in each["path"]
    }
)


@pytest.mark.parametrize(("name", "path"), PATHS)
def test_queries_have_the_replies_of_the_sdk(
    name: str, path: str, played: Callable[[str], Chain]
) -> None:
    for each in recorded(name)["queries"]:
        if each["path"] != path or OVERFLOW.search(each["name"]):
            continue
        found = played(name).app.query(
            path, b64decode(each["data"] or ""), each["height"], False
        )
        own, theirs = reply(found), recorded_reply(each["reply"])
        assert compared(path, own) == compared(path, theirs), each["name"]


def compared(path: str, given: Json) -> Json:
    code, codespace, log, value = given
    # Go's protobuf adds a space without line breaks in some builds.
    log = PLACE.sub("", log).replace("\xa0", " ")
    if log.startswith("proto: "):
        # The texts for malformed requests differ.
        log = "unexpected EOF: invalid request"
    # The texts for bytes that are cut off differ.
    log = CUT_OFF.sub(r"\1", log)
    if path.endswith("/HistoricalInfo"):
        # The header's hashes belong to the chain.
        return code, codespace, log, Message(Message(value).blob(1)).blobs(2)
    if path.endswith("/Subspaces"):
        # The SDK returns them in no order.
        return code, codespace, log, sorted(Message(value).blobs(1))
    return code, codespace, log, value
