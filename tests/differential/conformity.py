"""Run ``noderpc conform`` on real nodes, one that was pruned by hand, companions, and ours.

``python -m tests.differential.conformity VERSION=BINARY … [--prune PRUNECHAIN]``
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

from .companion import beside
from .history import History
from .net import Net, real_net
from .sides import VERSIONS, Side, Version, ours

CONFORM = [sys.executable, "-c", "from flask_noderpc.cli import main; main()", "conform"]
_BOUNDS = ("lowest block", "lowest results", "lowest indexed block")
BLOCK, RESULTS = 6, 9
"""Lowest height of blocks and of results in a node that is pruned by hand."""


def conform(side: Side) -> tuple[dict[str, Any], int]:
    """Return the findings of the command about a node, by the names of probes, and its exit
    code."""
    began = monotonic()
    done = subprocess.run([*CONFORM, side.url, "--json"], capture_output=True, text=True)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    print(f"  {monotonic() - began:.1f} s, exit code {done.returncode}")
    return found, done.returncode


def compare(version: Version, binary: Path, scratch: Path, program: Path | None = None) -> int:
    """Print unexpected findings; return their number."""
    with real_net(binary, version, scratch / "net", count=1) as net:
        History(net).small()
        wrong = _check("real", version, net.side, (1, 1, 1))
        with beside(net.side, version, scratch / "beside") as companion:
            wrong += _check("companion", version, companion, (1, 1, 1))
        if program is not None:
            _prune(net, program)
            wrong += _check("pruned", version, net.side, (BLOCK, RESULTS, BLOCK))
        with ours(net.nodes[0].home, scratch / "ours", version) as own:
            for number in range(3):
                own.call("broadcast_tx_commit", tx=f"YT0{number}")
            wrong += _check("ours", version, own, (1, 1, 1))
    return wrong


def _prune(net: Net, program: Path) -> None:
    (node,) = net.nodes
    node.stop()
    subprocess.run([program, node.home, str(BLOCK), str(RESULTS)], check=True)
    node.start()


def _check(name: str, version: Version, side: Side, bounds: tuple[int, int, int]) -> int:
    print(f"{version.name} {name}:")
    found, code = conform(side)
    wanted = dict(zip(_BOUNDS, bounds, strict=True)) | {
        "latest block": side.height(),
        "dialect": _dialect(name, version),
        "websocket": True,
        "proven heights": min(10, side.height() - max(bounds)),
        "missing methods": "none",
    }
    others = {probe: each for probe, each in wanted.items() if found[probe]["value"] != each}
    for probe, each in others.items():
        print(f"  {probe} is {found[probe]}, and should be {each}")
    return len(others) + min(code, 1)


def _dialect(name: str, version: Version) -> str:
    # `go install` built tag v0.40.0 with the version 0.39.0.
    if version.name == "0.40.0" and name in ("real", "pruned"):
        return "comet-0.39"
    return version.dialect


def main() -> None:
    """Probe, print, and fail if a finding is unexpected."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.conformity")
    parser.add_argument("nodes", nargs="+", metavar="VERSION=BINARY")
    parser.add_argument("--prune", type=Path, help="tests/clients/go/prunechain, for 0.38")
    given = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    wrong = 0
    for node in given.nodes:
        name, _, binary = node.partition("=")
        program = given.prune if name.startswith("0.38") else None
        with tempfile.TemporaryDirectory() as scratch:
            wrong += compare(VERSIONS[name], Path(binary), Path(scratch), program)
    raise SystemExit(min(wrong, 1))


if __name__ == "__main__":
    main()
