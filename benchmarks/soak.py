"""Does ``noderpc start`` leak? ``python -m benchmarks.soak --minutes 30``.

Clients subscribe, read events, unsubscribe, hang up and come back, all the time, while
blocks are made. Prints the memory of the server over the minutes after a warm-up, its slope,
and its open files and threads; fails when the slope is more than ``--at-most``.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click

from tests.serve.kit import started
from tests.websocket.client import Client

CLIENTS = 8
_QUERIES = ("tm.event='Tx'", "tm.event='NewBlock'", "app.key='{}'", "tx.height>{}")
_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Look:
    """The server at one moment."""

    minutes: float
    memory_kb: int
    files: int
    threads: int


def look(pid: int, began: float) -> Look:
    """What the kernel says of the server."""
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return Look(
        (time.monotonic() - began) / 60,
        int(status["VmRSS"].split()[0]),
        sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        int(status["Threads"]),
    )


def visit(url: str, dice: random.Random) -> None:
    """One client's stay: a few subscriptions, with and without their ends."""
    with closing(Client(url, timeout=60)) as client:
        for number in range(dice.randint(1, 5)):
            query = dice.choice(_QUERIES).format(dice.randrange(1000))
            client.call("subscribe", {"query": query}, f"s{number}")
            client.call("broadcast_tx_sync", {"tx": "YT0x"}, "sent")
            client.call("status", own_id="status")
            while client.json()["id"] != "status":
                pass
            if dice.random() < 0.5:
                client.call("unsubscribe", {"query": query}, "ended")
        if dice.random() < 0.5:
            client.frame(8, b"\x03\xe8")
            while client.read() is not None:
                pass


class Crowd:
    """Threads that visit one after another until they are stopped."""

    def __init__(self, url: str) -> None:
        self.visits = 0
        self.failure: Exception | None = None
        self._url = url
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(random.Random(seed),))
            for seed in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, dice: random.Random) -> None:
        try:
            while not self._stopping.is_set():
                visit(self._url, dice)
                self.visits += 1
        except Exception as error:
            self.failure = error

    def stop(self) -> None:
        """Let each visit end; raise what one of them raised."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self.failure is not None:
            raise self.failure


def soak(url: str, pid: int, minutes: float, tell: Callable[[str], None]) -> list[Look]:
    """Looks at the serving process, once a second."""
    began = time.monotonic()
    looks = [look(pid, began)]
    crowd = Crowd(url)
    pause = threading.Event()
    while looks[-1].minutes < minutes and crowd.failure is None:
        pause.wait(_LOOK_S)
        looks.append(look(pid, began))
    crowd.stop()
    pause.wait(_LOOK_S)
    looks.append(look(pid, began))
    tell(f"{crowd.visits} visits in {minutes:g} minutes")
    return looks


def slope(looks: list[Look]) -> float:
    """Kilobytes a minute, by least squares."""
    found = statistics.linear_regression(
        [one.minutes for one in looks], [one.memory_kb for one in looks]
    )
    return found.slope


@click.command()
@click.option("--minutes", default=1.0, show_default=True)
@click.option("--at-most", default=1000.0, show_default=True, help="Kilobytes a minute.")
def main(minutes: float, at_most: float) -> None:
    """Print memory, files and threads, and fail when memory grows."""
    with tempfile.TemporaryDirectory() as folder:
        # A block every hundredth of a second: SQLite's cache of pages is full early on, and
        # would look like a leak while it fills.
        pace = ("--block-interval", "0.01", "--empty-blocks")
        with started(Path(folder), *pace) as node:
            node.until_up()
            (pid,) = node.children()
            looks = soak(node.url(), pid, minutes, click.echo)
    first, *_, last = looks
    steady = [one for one in looks[:-1] if one.minutes > minutes / 2]
    for one in steady[:: max(1, len(steady) // 10)]:
        click.echo(f"{one.minutes:6.2f} min {one.memory_kb:8} kB")
    found = slope(steady)
    click.echo(f"slope {found:+.0f} kB a minute in the second half")
    click.echo(
        f"files {first.files} -> {last.files}, threads {first.threads} -> {last.threads}"
    )
    if found > at_most:
        raise click.ClickException(f"memory grows by more than {at_most:g} kB a minute")


if __name__ == "__main__":
    main()
