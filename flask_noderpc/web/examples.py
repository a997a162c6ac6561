"""Examples of parameters: what a chain has, and how that is written in a URI and in JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from .. import jsoncodec
from ..backends.base.backend import ChainBackend
from ..protocol.comet.hashes import tx_hash
from ..wire import json_schema as forms

Json = Any
Values = Mapping[str, Any]
"""Values by the names of parameters: hashes as bytes, other bytes as the text that they are."""

_PEER = "1f8a5e2c3b4d6a7988c0e1d2f3a4b5c6d7e8f901@127.0.0.1:26656"


def of_chain(backend: ChainBackend) -> dict[str, Values | None]:
    """Return values for the routes that need some, ``None`` where the chain has none yet."""
    latest = backend.reads.latest_height()
    by_hash = {"hash": backend.reads.block_meta(latest).block_id.hash} if latest else None
    recent = backend.reads.latest_txs(1)
    a_tx = {"tx": "name=satoshi"}
    return {
        "block_by_hash": by_hash,
        "header_by_hash": by_hash,
        "block": {} if latest else None,
        "header": {} if latest else None,
        "commit": {} if latest else None,
        "block_results": {} if latest else None,
        "blockchain": {} if latest else None,
        "tx": {"hash": tx_hash(recent[0].tx), "prove": True} if recent else None,
        "tx_search": {"query": "tx.height>0"},
        "block_search": {"query": "block.height>0"},
        "check_tx": a_tx,
        "broadcast_tx_sync": a_tx,
        "broadcast_tx_async": a_tx,
        "broadcast_tx_commit": a_tx,
        "broadcast_evidence": {
            "evidence": {"type": "tendermint/DuplicateVoteEvidence", "value": {}}
        },
        "abci_query": {"data": "name"},
        "dial_seeds": {"seeds": [_PEER]},
        "dial_peers": {"peers": [_PEER]},
    }


def examples_of(backend: ChainBackend) -> dict[str, dict[str, Any] | None]:
    """Return parameters of GET from the chain, by route, for those that require any; ``None``
    of a route that has nothing to show."""
    return {
        route: None if values is None else {name: in_uri(each) for name, each in values.items()}
        for route, values in of_chain(backend).items()
    }


def in_uri(value: Json) -> str:
    """Return a value as it stands in a URI of every dialect."""
    if isinstance(value, bytes):
        return "0x" + value.hex().upper()
    return as_text(value) if not isinstance(value, str) else jsoncodec.encode(value).decode()


def in_json(value: Json, form: Json) -> str:
    """Return a value as the text of a JSON parameter with the schema ``form``: of a string its
    content, else JSON."""
    if form in (forms.BASE64, forms.HASH, forms.HEX):
        content = value if isinstance(value, bytes) else str(value).encode()
        return content.hex() if form == forms.HEX else base64.b64encode(content).decode()
    return as_text(value)


def as_text(value: Json) -> str:
    """Return a string as it is, and any other value as JSON."""
    return value if isinstance(value, str) else jsoncodec.encode(value).decode()
