"""Compare the REST responses for recorded chains with the Cosmos SDK 0.53.8's."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from functools import cache
from urllib.parse import unquote

import pytest

from flask_noderpc.cosmos.rest import gateway
from flask_noderpc.domain.abci import QueryResult

from ...clients import record_modules_rest, record_pool_rest
from .playing import Chain, Json, recorded

# Hashes over the state belong to the chain.
OWN = re.compile(r'"(app_hash|next_validators_hash)":"[^"]*"')
PLACE = re.compile(r" \[\S+\.go:\d+\]")
# The texts for bytes that are cut off differ.
CUT_OFF = re.compile(r"(unmarshal to legacytx\.StdTx failed)[^\"]*")
RECORDINGS = {"main": record_modules_rest.RECORDING, "pool": record_pool_rest.RECORDING}


@cache
def replies(name: str) -> Json:
    if name in RECORDINGS:
        return json.loads(gzip.decompress(RECORDINGS[name].read_bytes()))
    return recorded(name)["rest"]


def shown(text: str) -> str:
    # Go's protobuf adds a space without line breaks in some builds.
    text = CUT_OFF.sub(r"\1", text.replace("\xa0", " "))
    return OWN.sub("…", PLACE.sub("", text.rstrip("\n")))


def asked(given: Json) -> gateway.Request:
    path, _, query = given["path"].partition("?")
    height = (given["headers"] or {}).get("x-cosmos-block-height", "")
    body = (given["body"] or "").encode()
    return gateway.Request(given["method"], unquote(path), query, body, height)


@pytest.mark.parametrize(("name", "least"), [("main", 500), ("pool", 150), ("vesting", 90)])
def test_each_reply_is_that_of_the_sdk(
    name: str, least: int, played: Callable[[str], Chain]
) -> None:
    def query(path: str, data: bytes, height: int) -> QueryResult:
        return played(name).app.query(path, data, height, False)

    def send(method: str, tx: bytes) -> None:
        raise AssertionError("the recording sends nothing")

    different = []
    # Go's router redirects a path with two slashes; ours treats them as one.
    for each in (given for given in replies(name) if "//" not in given["path"]):
        reply = gateway.answer(asked(each), query, send)  # type: ignore[arg-type]
        own, theirs = shown(reply.body.decode()), shown(each["reply"])
        if (int(reply.status), own) != (each["status"], theirs):
            different.append((each["name"], reply.status, own, each["status"], theirs))
    assert different == []
    assert len(replies(name)) > least
