"""A project of hardhat on our node and on anvil: ``python -m benchmarks.hardhat``.

Prints the seconds from the start of ``hardhat test`` to its end, on new chains, alternately,
and the ratio of the medians. The tests deploy, call, take snapshots and revert, on two cores.
Anvil fails some of them, which call methods that only hardhat and our node have. Needs
Node.js, and ``npm ci`` in tests/clients/hardhat2 and tests/clients/ethereum.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import click

from tests.clients.test_hardhat import HARDHAT_2, copied, passed, run_hardhat

from .peers.anvil import anvil
from .peers.ours import START_COMMAND, noderpc_start
from .process import Server

_CORES = "0,1"
_CHAIN_ID = 31337


@click.command()
@click.option("--rounds", default=3, show_default=True, help="Of which the median is shown.")
def main(rounds: int) -> None:
    """Print both times and their ratio."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        project = folder / "project"
        project.mkdir()
        copied(HARDHAT_2, project)
        # The first run compiles the contracts.
        with anvil(_CHAIN_ID, block_time=False, cores=_CORES) as server, server.awake():
            _seconds(project, server)
        runs: dict[str, Callable[[int], AbstractContextManager[Server]]] = {
            START_COMMAND: lambda turn: noderpc_start(
                folder / str(turn), {"dev": True, "json_rpc_enable": True}, _CORES
            ),
            "anvil": lambda _: anvil(_CHAIN_ID, block_time=False, cores=_CORES),
        }
        found = {name: list[float]() for name in runs}
        for turn in range(rounds):
            for name, run in runs.items():
                with run(turn) as server, server.awake():
                    click.echo(f"{name}: ", nl=False)
                    found[name].append(_seconds(project, server))
        ours, theirs = (median(found[name]) for name in runs)
        click.echo(f"{ours:.2f} s, anvil {theirs:.2f} s, ratio {ours / theirs:.2f}")


def _seconds(project: Path, server: Server) -> float:
    began = time.monotonic()
    shown = run_hardhat(project, "test", "--network", "node", NODE_URL=server.url).stdout
    seconds = time.monotonic() - began
    click.echo(f"{passed(shown)} tests passed, {seconds:.2f} s")
    return seconds


if __name__ == "__main__":
    main()
