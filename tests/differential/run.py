"""Compare two nodes: one scenario, the same requests."""

from __future__ import annotations

import base64
import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..helpers.websocket import WebSocketClient
from . import explained, scenario
from .compare import Difference, differences
from .http_client import Reply, ask
from .masks import mask_of
from .sides import HOME_FILES, Side, Version, make_home, ours, real

GOLDEN = Path(__file__).parent.parent / "golden"


def compare(
    version: Version,
    binary: Path,
    scratch: Path,
    *,
    record: bool = False,
    everything: bool = False,
) -> int:
    """Print the differences; return how many of them have no explanation."""
    home = scratch / "home"
    make_home(binary, home)
    with real(binary, home) as side:
        theirs = hear(side, version)
    with ours(home, scratch / "ours", version) as side:
        own = hear(side, version)
    if record:
        write(version, home, theirs)
    found = list(all_differences(theirs, own))
    unexplained = [one for one in found if explained.reason(version.name, one) is None]
    for one in found if everything else unexplained:
        known = explained.reason(version.name, one)
        print(one, "\n   ", known.why if known else "NOT EXPLAINED")
    print(
        f"{version.name}: {len(theirs)} requests, {len(found)} differences,"
        f" {len(unexplained)} not explained"
    )
    return len(unexplained)


def hear(side: Side, version: Version) -> dict[str, Reply]:
    """Return a node's responses to all requests, masked, by the names of the requests."""
    modern = version.is_modern
    height = scenario.play(side, scenario.TXS + (scenario.VALIDATOR_TXS if modern else ()))
    block_hash = side.call("block", height="3")["block_id"]["hash"]
    asked = scenario.requests(height, block_hash, scenario.ORIGIN_DENIED if modern else ())
    answers = {request.name: ask(side.url, request) for request in asked}
    assert side.height() == height, "a request has made a block"
    events = hear_events(side, scenario.CATEGORIES + (("NewBlockEvents",) if modern else ()))
    mask = mask_of(side, side.settle(height + 1))
    return {mask(name): masked(answer, mask) for name, answer in (answers | events).items()}


def masked(received: Reply, mask: Any) -> Reply:
    """Return the response without values that depend on the clock."""
    return replace(
        received,
        body=mask(received.body),
        replies=tuple(mask(reply) for reply in received.replies),
    )


def hear_events(side: Side, categories: tuple[str, ...]) -> dict[str, Reply]:
    """Return the first event of each category when a transaction is committed."""
    clients = {category: WebSocketClient(side.url) for category in categories}
    try:
        for category, client in clients.items():
            client.call("subscribe", {"query": f"tm.event='{category}'"}, request_id=category)
            assert "result" in json.loads(client.read() or ""), category
        side.call("broadcast_tx_commit", tx=base64.b64encode(b"told=of").decode())
        with ThreadPoolExecutor(len(clients)) as pool:
            received = pool.map(lambda client: client.read() or "", clients.values())
            return {
                f"event {category}": Reply(101, replies=(reply,))
                for category, reply in zip(clients, received, strict=True)
            }
    finally:
        for client in clients.values():
            client.close()


def all_differences(theirs: dict[str, Reply], own: dict[str, Reply]) -> list[Difference]:
    """Return the differences of all responses; both nodes must have received the same
    requests."""
    assert theirs.keys() == own.keys(), theirs.keys() ^ own.keys()
    return [one for name in theirs for one in differences(name, theirs[name], own[name])]


def write(version: Version, home: Path, received: dict[str, Reply]) -> None:
    """Write a real node's responses, with the genesis and keys of its chain."""
    document = {
        "home": {name: (home / "config" / name).read_text() for name in HOME_FILES},
        "told": {name: asdict(answer) for name, answer in received.items()},
    }
    _path(version).write_bytes(gzip.compress(json.dumps(document).encode(), mtime=0))


def read(version: Version) -> tuple[dict[str, str], dict[str, Reply]]:
    """Read what :func:`write` stored: the files of the home, and the responses."""
    document = json.loads(gzip.decompress(_path(version).read_bytes()))
    received = {
        name: Reply(**{**answer, "replies": tuple(answer["replies"])})
        for name, answer in document["told"].items()
    }
    return document["home"], received


def _path(version: Version) -> Path:
    return GOLDEN / f"told_{version.name}.json.gz"
