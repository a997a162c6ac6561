"""Compare a companion with its net of real validators at every height."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from time import monotonic
from urllib.parse import quote, urlsplit

from ..helpers.until import until
from .allowed import is_allowed
from .companion import beside, reply
from .compare import Difference, differences
from .history import History
from .http_client import Ask, Reply
from .net import Net, real_net
from .notifications import Listener, unequal
from .sides import Side, Version

_AT_HEIGHT = (
    "block?height={}", "block_results?height={}", "header?height={}",
    "commit?height={}", "consensus_params?height={}", "validators?height={}",
    "validators?height={}&page=2", "validators?height={}&per_page=100",
    "blockchain?minHeight={}&maxHeight={}",
)  # fmt: skip
_ONCE = (
    "genesis", "genesis_chunked", "genesis_chunked?chunk=0", "genesis_chunked?chunk=1",
    "blockchain", "blockchain?minHeight=1&maxHeight=20", "blockchain?minHeight=5",
    "blockchain?maxHeight=9", "validators", "validators?per_page=100", "block", "header",
    "abci_info", "abci_query?data=%22name%22", "health", "consensus_params?height=1",
    "consensus_state", "dump_consensus_state", "unconfirmed_txs", "num_unconfirmed_txs",
    "status", "net_info", "block?height=1000", "block_results?height=0",
)  # fmt: skip

_TX_QUERIES = (
    "tx.height>0", "tx.height=12", "tx.height>=5 AND tx.height<=14", "app.key='name'",
    "app.creator='Cosmoshi' AND tx.height>6", "app.key EXISTS", "app.key CONTAINS 'evid'",
    "app.noindex_key='index is working'", "no.such='thing'",
)  # fmt: skip
_BLOCK_QUERIES = ("block.height>0", "block.height>=4 AND block.height<9", "block.height=7")


def compare(version: Version, binary: Path, scratch: Path) -> int:
    """Print the differences; return how many of them have no explanation."""
    with real_net(binary, version, scratch / "net") as net:
        history = History(net)
        history.first()
        began = monotonic()
        with beside(net.side, version, scratch / "beside") as companion:
            print(f"{version.name}: all blocks after {monotonic() - began:.1f} s")
            with (
                closing(Listener(net.side, version)) as heard,
                closing(Listener(companion, version)) as own,
            ):
                history.second(companion)
                height = net.settle()
                until(lambda: companion.height() >= height, f"block {height}")
                differing = [
                    one
                    for one in unequal(heard, own, height)
                    if not is_allowed(version.name, one)
                ]
                told = sum(map(len, heard.told.values()))
            print(f"{version.name}: {told} notifications, {len(differing)} differences")
            found = [*map(str, differing), *_compare(version, net, companion, height)]
            found += map(str, _while_halted(net, companion))
    for one in found:
        print(one)
    return len(found)


def _compare(version: Version, net: Net, companion: Side, height: int) -> list[str]:
    bodies = [path for path in stored(net.side, height) if _has_route(version, path)]
    unequal_bodies = [path for path in bodies if not is_equal(path, net.side, companion)]
    others = [path for path in (*_ONCE, *searches()) if _has_route(version, path)]
    found = [one for path in others for one in _by_field(version, path, net.side, companion)]
    print(
        f"{version.name}: {height} heights, {len(bodies)} bodies,"
        f" {len(unequal_bodies)} are not the same bytes; {len(others)} others,"
        f" {len(found)} differences"
    )
    return [f"not the same bytes: {path}" for path in unequal_bodies] + [*map(str, found)]


def _while_halted(net: Net, companion: Side) -> Iterator[Difference]:
    """Yield differences while there is no quorum: transactions stay in the mempool, and rounds
    continue."""
    for node in net.nodes[1:]:
        node.stop()
    for tx, side in ((b"halted=node", net.side), (b"halted=companion", companion)):
        side.call("broadcast_tx_sync", tx=base64.b64encode(tx).decode())
    for path in (
        "unconfirmed_txs", "unconfirmed_txs?limit=1", "num_unconfirmed_txs", "net_info",
        "consensus_state", "dump_consensus_state", "status", "abci_info",
    ):  # fmt: skip
        yield from _once_quiet(net, path, companion)


def _once_quiet(net: Net, path: str, companion: Side) -> list[Difference]:
    """Return the differences, for a moment in which the node itself gives the same response
    twice."""
    found: list[Difference] = []

    def is_quiet() -> bool:
        before = list(_by_field(net.version, path, net.side, net.side))
        found[:] = _by_field(net.version, path, net.side, companion)
        after = list(_by_field(net.version, path, net.side, net.side))
        return not found or not (before or after)

    until(is_quiet, f"{path} twice the same")
    return found


def _has_route(version: Version, path: str) -> bool:
    return version.dialect != "comet-0.34" or not path.lstrip("/").startswith("header")


def stored(node: Side, height: int) -> Iterator[str]:
    """Yield the paths of all that is proven at each height."""
    for at in range(1, height):
        for path in _AT_HEIGHT:
            yield "/" + path.replace("{}", str(at))
        block = node.call("block", height=str(at))
        for route in ("block_by_hash", "header_by_hash"):
            yield f"/{route}?hash=0x{block['block_id']['hash']}"
        for tx in block["block"]["data"]["txs"] or ():
            digest = hashlib.sha256(base64.b64decode(tx)).hexdigest()
            yield f"/tx?hash=0x{digest}&prove=true"
            yield f"/tx?hash=0x{digest}"


def is_equal(path: str, node: Side, companion: Side) -> bool:
    """Return true if both send the same status and the same bytes."""
    theirs, own = (reply(side, Ask(path, path=path)) for side in (node, companion))
    return (theirs.status, theirs.body) == (own.status, own.body)


def searches() -> Iterator[str]:
    """Yield the paths of searches, in both orders, with several pages."""
    for query in _TX_QUERIES:
        for order in ("asc", "desc"):
            for page in (1, 2):
                yield _search("tx_search", query, order, page) + "&prove=true"
    for query in _BLOCK_QUERIES:
        for order in ("asc", "desc"):
            for page in (1, 2):
                yield _search("block_search", query, order, page)


def _search(route: str, query: str, order: str, page: int) -> str:
    shown = quote(f'"{query}"')
    return f"{route}?query={shown}&order_by=%22{order}%22&per_page=5&page={page}"


def _by_field(version: Version, path: str, node: Side, companion: Side) -> Iterator[Difference]:
    theirs, own = (reply(side, Ask(path, path=f"/{path}")) for side in (node, companion))
    # The companion's response contains the address of its node.
    own = replace(own, body=own.body.replace(urlsplit(node.url).netloc, "HOST"))
    if path in ("dump_consensus_state", "net_info"):
        theirs, own = map(_with_sorted_peers, (theirs, own))
    for one in differences(f"net {path}", theirs, own):
        if not one.where.startswith("headers") and not is_allowed(version.name, one):
            yield one


def _with_sorted_peers(found: Reply) -> Reply:
    """Return a reply with sorted peers, which are in any order since 0.39."""
    body = json.loads(found.body)
    body["result"]["peers"].sort(
        key=lambda peer: peer.get("node_address") or peer["node_info"]["id"]
    )
    return replace(found, body=json.dumps(body))
