"""Compare a companion with its real node: the same requests to both."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from ..helpers.ports import free_port
from ..helpers.until import until
from ..server.node_process import COMMAND
from . import explained, scenario
from .compare import Difference, differences
from .http_client import Ask, Reply, ask
from .sides import Side, Version, make_home, real, running

_AT_HEIGHT = (
    "block", "block_results", "header", "commit", "consensus_params", "validators",
    "validators?page=2&per_page=1",
)  # fmt: skip

# Requests whose subject is the process that responds, and not the chain.
_OF_THE_PROCESS = re.compile(r"(uri|post) (status|dial_|nosuch).*")

# Replies that depend on the results of the latest block are provisional.
_PROVISIONAL = re.compile(r"(uri|post) (block_results|consensus_params)( .*)?")


def compare(version: Version, binary: Path, scratch: Path) -> int:
    """Print the differences; return how many of them have no explanation."""
    home = scratch / "followed"
    make_home(binary, home)
    with real(binary, home) as node:
        modern = version.is_modern
        # 0.34 lacks some routes; their paths get the app's error page, which is not compared.
        modern_routes = version.dialect != "comet-0.34"
        scenario.play(node, scenario.TXS + (scenario.VALIDATOR_TXS if modern else ()))
        with beside(node, version, scratch / "companion") as companion:
            height = _grow(node, companion)
            found = list(_of_scenario(version, node, companion, height))
            paths = [
                path for path in stored(node, height) if modern_routes or "header" not in path
            ]
            unequal = [path for path in paths if not is_equal(path, node, companion)]
    for one in found:
        print(one)
    for path in unequal:
        print("not the same bytes:", path)
    print(
        f"{version.name}: {len(paths)} responses, {len(unequal)} differ;"
        f" {len(found)} other differences"
    )
    return len(unequal) + len(found)


@contextmanager
def beside(
    node: Side, version: Version | None, folder: Path, dialect: str = ""
) -> Iterator[Side]:
    """Run a companion of a node until it has all blocks.

    Without a version it finds the version itself; it serves the node's dialect unless another
    one is given.
    """
    folder.mkdir(exist_ok=True)
    port = free_port()
    command = [
        *COMMAND, "--upstream", node.url, "--exclude-routes", "events",
        "--home", str(folder), "--rpc.laddr", f"tcp://127.0.0.1:{port}",
    ]  # fmt: skip
    if version is not None:
        # `go install` built tag v0.40.0 with the version 0.39.0.
        command += ["--dialect", dialect or version.dialect]
        command += ["--upstream-dialect", version.dialect]
    with running(command, folder, Side(f"http://127.0.0.1:{port}"), "block") as side:
        height = node.height()

        def is_complete() -> bool:
            # The status is an error until the first block has been fetched.
            with suppress(AssertionError):
                sync = side.call("status")["sync_info"]
                return sync["earliest_block_height"] == "1" and side.height() >= height
            return False

        until(is_complete, f"blocks 1 to {height}")
        yield side


def _grow(node: Side, companion: Side) -> int:
    """Send a transaction through the companion; return the settled height of both."""
    tx = base64.b64encode(b"by=companion").decode()
    sent = companion.call("broadcast_tx_commit", tx=tx)
    height = node.settle(int(sent["height"]))
    until(lambda: companion.height() >= height, f"block {height}")
    return height


def stored(node: Side, height: int) -> Iterator[str]:
    """Return the paths of all that is proven."""
    for at in range(1, height):
        for route in _AT_HEIGHT:
            yield f"/{route}{'&' if '?' in route else '?'}height={at}"
        block = node.call("block", height=str(at))
        for route in ("block_by_hash", "header_by_hash"):
            yield f"/{route}?hash=0x{block['block_id']['hash']}"
        for tx in block["block"]["data"]["txs"] or ():
            tx_hash = hashlib.sha256(base64.b64decode(tx)).hexdigest()
            yield f"/tx?hash=0x{tx_hash}&prove=true"
    yield from ("/genesis", "/genesis_chunked?chunk=0", "/abci_info", "/net_info")


def is_equal(path: str, node: Side, companion: Side) -> bool:
    """Return true if both send the same bytes."""
    request = Ask(path, path=path)
    theirs, own = (reply(side, request) for side in (node, companion))
    return (theirs.status, theirs.body) == (own.status, own.body)


def _of_scenario(
    version: Version, node: Side, companion: Side, height: int
) -> Iterator[Difference]:
    """Return the differences without an explanation, for every request of the scenario."""
    block_hash = node.call("block", height="3")["block_id"]["hash"]
    unwanted = scenario.ORIGIN_DENIED if version.is_modern else ()
    for request in scenario.requests(height, block_hash, unwanted):
        if _OF_THE_PROCESS.fullmatch(request.name):
            continue
        theirs, own = (reply(side, request) for side in (node, companion))
        for one in differences(request.name, theirs, own):
            if one.where == "headers.Cache-Control" and _PROVISIONAL.fullmatch(one.request):
                continue
            if explained.reason(version.name, one) is None:
                yield one


def reply(side: Side, request: Ask) -> Reply:
    """Return a reply without the address that the index page has in its links."""
    reply = ask(side.url, request)
    return replace(reply, body=reply.body.replace(urlsplit(side.url).netloc, "HOST"))
