"""Report of a run: tables, chart, machine, and the table of the README."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.clients import ANVIL

from . import chart
from .compare import Bench, Row
from .nodes import COMETBFT
from .peers import cometbft
from .peers.bare import PYWSGI, VIEW
from .table import Table

ROOT = Path(__file__).parent.parent
_PACKAGES = (
    "flask-noderpc",
    "Flask",
    "gevent",
    "msgspec",
    "Flask-JSONRPC",
    "eth-tester",
    "py-evm",
)
_SHORT = ("status", "block, 10 txs", "blockchain", "tx_search, 10 hits", "POST batch of 100")
_MARKED = re.compile(r"(<!-- benchmarks -->\n).*(<!-- end of benchmarks -->)", re.DOTALL)


def save(folder: Path, tables: Sequence[Table], bench: Bench) -> None:
    """Write the report; update the README only if the folder is in its repository."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        table.save(folder)
    rows = [row for table in tables for row in table.rows]
    chart.save(folder / "chart.png", rows)
    (folder / "machine.txt").write_text("".join(f"- {line}\n" for line in about(bench)))
    of_node = (row for table in tables if table.name == "nodes" for row in table.rows)
    short = "\n".join(_short([row for row in of_node if row.workload in _SHORT]))
    if ROOT in folder.resolve().parents and short:
        readme = ROOT / "README.md"
        readme.write_text(_MARKED.sub(rf"\g<1>{short}\n\g<2>", readme.read_text()))


def about(bench: Bench) -> Iterator[str]:
    """Yield the command, the machine, and the versions of all programs."""
    yield f"``python -m benchmarks --rounds {bench.rounds} --seconds {bench.seconds}``"
    yield f"{os.cpu_count()} cores, {_processor()}, Linux {platform.release()}"
    yield ", ".join([f"Python {platform.python_version()}", *_versions()])
    yield ", ".join([f"{COMETBFT} {cometbft.VERSION}", *_programs()])
    for peer, reason in bench.missing.items():
        yield f"Without {peer}: {reason}"


def _processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def _versions() -> Iterator[str]:
    for package in _PACKAGES:
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            continue


def _programs() -> Iterator[str]:
    for words in (["go", "version"], [str(ANVIL), "--version"], ["wrk", "-v"]):
        try:
            said = subprocess.run(words, capture_output=True, text=True).stdout
        except FileNotFoundError:
            continue
        yield " ".join(said.split("\n", 1)[0].split("[")[0].split()[:3])


def _short(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a few workloads as a Markdown table."""
    if not rows:
        return
    peers = (PYWSGI, VIEW, COMETBFT)
    yield f"| our requests a second / those of | {' | '.join(f'{peer}' for peer in peers)} |"
    yield f"|---|{'---|' * len(peers)}"
    for row in rows:
        ratios = (f"{row.ratios[peer]:.2f}" if peer in row.ratios else "" for peer in peers)
        yield f"| `{row.workload}`, {row.way} | {' | '.join(ratios)} |"
