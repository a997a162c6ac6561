"""How fast is a node? ``python -m benchmarks``.

Starts each server pinned to one core and wrk on the other, interleaves the runs, and
prints requests a second as ratios to a bare gevent.pywsgi with TCP_NODELAY and to a bare
Flask view that answers the same bytes, with the 99th percentile. Needs wrk (Debian's
package of that name).
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click

from .servers import LUA_POST, Server, running

_RUN = re.compile(r"Requests/sec:\s+([\d.]+)")
_P99 = re.compile(r"99%\s+([\d.]+)(us|ms|s)")
_BAD = re.compile(r"Non-2xx or 3xx responses: (\d+)")
_MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of request."""

    name: str
    path: str
    post: str | None = None


WORKLOADS = (
    Workload("health", "/health"),
    Workload("status", "/status"),
    Workload("block", "/block?height=500"),
    Workload(
        "POST block",
        "/",
        '{"jsonrpc":"2.0","id":1,"method":"block","params":{"height":"500"}}',
    ),
)


@dataclass(frozen=True, slots=True)
class Run:
    """What wrk measured."""

    per_second: float
    p99_ms: float


def load(url: str, workload: Workload, seconds: int, script: Path) -> Run:
    """One run of wrk on the second core, over 16 keep-alive connections."""
    command = ["taskset", "-c", "1", "wrk", "--latency", "-t1", "-c16", f"-d{seconds}s"]
    if workload.post is not None:
        script.write_text(LUA_POST.format(body=workload.post))
        command += ["-s", str(script)]
    text = subprocess.run(
        [*command, url + workload.path], check=True, capture_output=True, text=True
    ).stdout
    if bad := _BAD.search(text):
        raise click.ClickException(f"{workload.name}: {bad[1]} answers were errors")
    speed, tail = _RUN.search(text), _P99.search(text)
    assert speed is not None
    assert tail is not None, text
    return Run(float(speed[1]), float(tail[1]) * _MILLISECONDS[tail[2]])


def measure(servers: list[Server], workload: Workload, rounds: int, seconds: int) -> list[Run]:
    """The median run of each server, the rounds interleaved."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "post.lua"
        runs: list[list[Run]] = [[] for _ in servers]
        for _ in range(rounds):
            for server, found in zip(servers, runs, strict=True):
                found.append(load(server.url, workload, seconds, script))
    return [
        Run(
            statistics.median(run.per_second for run in found),
            statistics.median(run.p99_ms for run in found),
        )
        for found in runs
    ]


@click.command()
@click.option("--rounds", default=3, show_default=True)
@click.option("--seconds", default=3, show_default=True, help="Length of one run.")
def main(rounds: int, seconds: int) -> None:
    """Print the table."""
    for tool in ("wrk", "taskset"):
        if shutil.which(tool) is None:
            raise click.ClickException(f"{tool} is not installed")
    click.echo(f"{'workload':12} {'node/s':>8} {'/ pywsgi':>9} {'/ Flask':>8} {'p99 ms':>7}")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as start:
        node = start("node")
        for workload in WORKLOADS:
            peers = [
                start(kind, node.sample(workload.path, workload.post))
                for kind in ("pywsgi", "flask")
            ]
            ours, bare, view = measure([node, *peers], workload, rounds, seconds)
            click.echo(
                f"{workload.name:12} {ours.per_second:8.0f}"
                f" {ours.per_second / bare.per_second:9.2f}"
                f" {ours.per_second / view.per_second:8.2f} {ours.p99_ms:7.1f}"
            )
            for peer in peers:
                peer.stop()


if __name__ == "__main__":
    main()
