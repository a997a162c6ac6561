"""Tests that genesis documents are read and refused as by Go's readers."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from flask_noderpc import jsoncodec
from flask_noderpc.domain.genesis import Genesis
from flask_noderpc.domain.time import ZERO_TIME
from flask_noderpc.domain.validator import ValidatorUpdate
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.protocol.comet.genesis import read
from flask_noderpc.protocol.comet.genesis.schema import VERSIONS, comet_document
from flask_noderpc.protocol.comet.validators import genesis_set

from .genesis_cases import COMETBFT, GOLDEN, READERS, SDK, cases

Json = Any


@cache
def recorded() -> dict[str, Json]:
    found: dict[str, Json] = json.loads(gzip.decompress(GOLDEN.read_bytes()))
    return found


def values(genesis: Genesis, version: str) -> dict[str, Json]:
    """Return the values in the form in which Go's programs print them."""
    written = jsoncodec.encode(comet_document(VERSIONS[version]).write(genesis))
    updates = [ValidatorUpdate(each.pub_key, each.power) for each in genesis.validators]
    return {
        "document": json.loads(written),
        "validators_hash": hashes.validators_hash(genesis_set(updates)).hex().upper(),
        "consensus_hash": hashes.consensus_hash(genesis.consensus_params).hex().upper(),
    }


def ours(text: str, reader: str) -> dict[str, Json]:
    version = "0.38" if reader == SDK else reader
    try:
        reading = read(text.encode(), ZERO_TIME, f"comet-{version}")
        reading.check()
    except ConfigurationError as error:
        return {"error": str(error)}
    return values(reading.genesis, version)


@dataclass(frozen=True)
class Explained:
    """The reason why documents are read differently than by Go."""

    names: str
    """Pattern of the documents' names."""
    reason: str
    readers: tuple[str, ...] = READERS


EXPLAINED = (
    Explained(r"(SDK|app text).*", "they have the form of the SDK, which is read", COMETBFT),
    Explained(
        r"mixed: (consensus without a height|consensus in CometBFT's form)",
        "a document with consensus has the form of the SDK; CometBFT would ignore its"
        " parameters and validators",
        COMETBFT,
    ),
    Explained(
        r"mixed: consensus in CometBFT's form",
        "the SDK falls back to CometBFT's form, and would ignore consensus",
        (SDK,),
    ),
    Explained(
        r"CometBFT: initial_height = (absent|null)|text: (a member twice|a state with spaces"
        r"|an escaped name|capital letters|nested deeply|only a chain id)",
        "without a height the SDK takes CometBFT's form for its own, and panics",
        (SDK,),
    ),
    Explained(r'.*: chain_id = "(\\u0000|a\\nb)"', "names of chains are printed in logs"),
    Explained(
        r'.*: genesis_time = "(0000|0001-01-01T00:00:00\+01:00).*', "Python has no year 0"
    ),
    Explained(r"text: a lone surrogate", "it can't be stored as UTF-8", COMETBFT),
    Explained(
        r'.*pub_key_types = \["bls12_381"\]',
        "CometBFT has them if it is built with the tag bls12381",
        ("0.40", "1.0"),
    ),
    Explained(
        r"SDK: app_state = null",
        "null stands for an absent state, as in CometBFT's form",
        (SDK,),
    ),
    Explained(
        r"app text: a member twice, then null",
        "of a member that is there twice the last one counts; Go's encoding/json skips null",
        (SDK,),
    ),
)


@pytest.mark.parametrize("reader", READERS)
def test_every_difference_to_go_has_a_reason(reader: str) -> None:
    rows = [row for row in EXPLAINED if reader in row.readers]
    unused = {row.names for row in rows}
    unexplained = {}
    for name, text in recorded()["documents"].items():
        theirs, own = recorded()["readers"][reader][name], ours(text, reader)
        if theirs == own or ("error" in theirs and "error" in own):
            continue
        reasons = {row.names for row in rows if re.fullmatch(row.names, name)}
        unused -= reasons
        if not reasons:
            unexplained[name] = theirs, own

    assert unexplained == {}
    assert unused == set()


def test_the_recorded_documents_are_those_of_the_table() -> None:
    assert recorded()["documents"] == cases()
