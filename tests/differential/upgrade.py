"""Upgrade a node in place from 0.34 to 0.38 while a companion follows it.

``python -m tests.differential.upgrade OLD=BINARY NEW=BINARY`` prints the new binary's responses
for the old heights, and its companions' responses: the one that followed the old binary, which
is
started again, and one that reads everything from the new binary.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from ..helpers.until import until
from .companion import beside, reply
from .compare import differences
from .explained import Reason
from .history import History
from .http_client import Ask
from .net import Net, real_net
from .network import searches, stored
from .sides import VERSIONS, Side, Version, configure, make_home

# Reasons from docs/companion/companion.rst, "upgrades".
_REASONS = (
    Reason(
        "/block_results.*",
        r"body\.result\.(app_hash|finalize_block_events)",
        "0.38 has no app_hash of the results that an older binary has stored, and an empty list"
        " of events where its own is null: state/store.go, responseFinalizeBlockFromLegacy",
    ),
    Reason(
        "/consensus_params.*",
        r"body\.result\.consensus_params\..*",
        "0.38 reads zeros where 0.34 has stored that they are unchanged; the header's"
        " consensus_hash refutes them",
    ),
)


def compare(old: Version, new: Version, binaries: tuple[Path, Path], scratch: Path) -> int:
    """Print the differences; return how many there are."""
    with real_net(binaries[0], old, scratch / "net", count=1) as net:
        History(net).small()
        with beside(net.side, None, scratch / "kept") as companion:
            last = net.settle()
            upgrade(net, new, binaries[1], scratch / "fresh")
            height = _play(net)
            until(lambda: companion.height() >= height, f"block {height} after the upgrade")
            version = companion.call("status")["node_info"]["version"]
            print(f"followed across the upgrade to {height}, serving {version}")
        found = 0
        for name in ("kept", "read anew"):
            with beside(net.side, None, scratch / name.replace(" ", "_")) as companion:
                print(f"{name}: {companion.call('status')['node_info']['version']}")
                found += _compare(name, net.side, companion, last)
        return found


def upgrade(net: Net, version: Version, binary: Path, scratch: Path) -> None:
    """Start another binary with the homes of a net, and a new file of settings."""
    make_home(binary, scratch)
    for node in net.nodes:
        node.stop()
        shutil.copy(scratch / "config" / "config.toml", node.home / "config" / "config.toml")
        configure(node.home)
        node.binary = binary
    for node in net.nodes:
        node.start()
    net.version = version


def _play(net: Net) -> int:
    """Continue the chain in the version that the net has now."""
    net.send(b"since=upgrade")
    History(net).small(b"new ")
    return net.settle()


def _compare(name: str, node: Side, companion: Side, last: int) -> int:
    """Print the differences by route, for the heights up to ``last`` and for those above."""
    counts: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str], str] = {}
    found_by_search = (f"/{path}" for path in searches())
    for path in (*stored(node, node.settle()), *found_by_search):
        theirs, own = (reply(side, Ask(path, path=path)) for side in (node, companion))
        route = path[1:].split("?")[0]
        age = _age(theirs.body, path, last) if "search" not in route else "all"
        if (theirs.status, theirs.body) == (own.status, own.body):
            kind = "equal" if theirs.status == 200 else "equal errors"
        elif theirs.status != 200:
            kind = "unanswered by the node"
        else:
            found = list(differences(path, theirs, replace(own, headers=theirs.headers)))
            kind = "differ"
            if all(any(known.covers("", one) for known in _REASONS) for one in found):
                kind = "differ with a reason"
            for one in found:
                where = one.where.translate(str.maketrans("", "", "0123456789"))
                examples.setdefault((route, where), str(one))
        counts[age, kind, route] += 1
    for (age, kind, route), count in sorted(counts.items()):
        print(f"{name}, {age} heights, {kind}: {count} {route}")
    for example in examples.values():
        print(example)
    return sum(count for (_, kind, _), count in counts.items() if kind == "differ")


def _age(body: str, path: str, last: int) -> str:
    # The first block of the new binary has the parameters that the old one stored.
    first_new = last + (2 if "consensus_params" in path else 1)
    return "old" if _height(body, path) < first_new else "new"


def _height(body: str, path: str) -> int:
    if "height=" in path.lower():
        return int(path.lower().split("height=")[1].split("&")[0])
    result = json.loads(body)["result"]
    header = result.get("header") or (result.get("block") or {}).get("header") or result
    return int(header["height"])


def main() -> None:
    """Compare, print, and fail if there is a difference."""
    (old, _, before), (new, _, after) = (given.partition("=") for given in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as scratch:
        binaries = (Path(before), Path(after))
        found = compare(VERSIONS[old], VERSIONS[new], binaries, Path(scratch))
    raise SystemExit(min(found, 1))


if __name__ == "__main__":
    main()
