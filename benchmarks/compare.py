"""Comparison of servers on one workload, measured alternately."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from .peers import MissingError
from .peers.ours import WAYS
from .process import Server
from .wrk import Ask, Run, load

TAIL = 5.0
"""Maximum ratio of the 99th percentile of response times to the median."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Duration of a measurement, and the folders of its files."""

    rounds: int
    seconds: int
    cache: Path
    """Folder of files that are built once."""
    scratch: Path
    missing: dict[str, str] = field(default_factory=dict)
    """Missing peers, with the reason."""

    @contextmanager
    def may_miss(self, peer: str) -> Iterator[None]:
        """Continue without a peer that is missing."""
        try:
            yield
        except MissingError as reason:
            if peer not in self.missing:
                click.echo(f"without {peer}: {reason}")
            self.missing[peer] = str(reason)


@dataclass(frozen=True, slots=True)
class Row:
    """Result of one workload in one of our ways."""

    workload: str
    way: str
    run: Run
    ratios: Mapping[str, float]
    """Our speed divided by each peer's."""
    targets: Mapping[str, float]

    def wanted(self) -> list[str]:
        """Return the minimum ratios to the peers that are present."""
        found = [f"{least:.2g} {peer}" for peer, least in self._targets()]
        return [*found, f"p99 {TAIL:g} p50"]

    def missed(self) -> list[str]:
        """Return the ratios that are below their minimum."""
        found = [
            f"{self.ratios[peer]:.2f} {peer}"
            for peer, least in self._targets()
            if self.ratios[peer] < least
        ]
        tail = self.run.p99_ms / self.run.p50_ms
        return [*found, f"p99 {tail:.1f} p50"] if tail > TAIL else found

    def _targets(self) -> list[tuple[str, float]]:
        return [(peer, least) for peer, least in self.targets.items() if peer in self.ratios]


def by_turns(
    bench: Bench, name: str, servers: Mapping[str, Server], ask: Callable[[str], Ask]
) -> dict[str, Run]:
    """Return the median run of each server; ``ask`` gives the requests for one."""
    found: dict[str, list[Run]] = {peer: [] for peer in servers}
    click.echo(f"{name} ".ljust(28, "."), nl=False)
    for peer, server in servers.items():
        # The first response may take long.
        sample(server, partial(ask, peer))
    for _ in range(bench.rounds):
        for peer, server in servers.items():
            with server.awake():
                found[peer].append(load(server.url, ask(peer), bench.seconds))
            click.echo(".", nl=False)
    runs = {peer: _median(of_one) for peer, of_one in found.items()}
    click.echo("  " + ", ".join(f"{peer} {run.per_second:,.0f}" for peer, run in runs.items()))
    return runs


def sample(server: Server, ask: Callable[[], Ask]) -> bytes:
    """Return one response, and fail if it is an error."""
    with server.awake():
        path, body = ask().first
        answer = server.ask(path, body)
    if b'"error":' in answer or b'"result":' not in answer:
        raise click.ClickException(f"{server.url}{path}: {answer[:300]!r}")
    return answer


def rows(
    name: str, runs: Mapping[str, Run], targets: Mapping[str, Mapping[str, float]]
) -> list[Row]:
    """Return a row for each of our ways."""
    return [
        Row(
            name,
            way,
            runs[way],
            {
                peer: runs[way].per_second / run.per_second
                for peer, run in runs.items()
                if peer not in WAYS
            },
            targets.get(way, {}),
        )
        for way in WAYS
        if way in runs
    ]


def _median(runs: list[Run]) -> Run:
    return Run(
        statistics.median(run.per_second for run in runs),
        statistics.median(run.p50_ms for run in runs),
        statistics.median(run.p99_ms for run in runs),
    )
