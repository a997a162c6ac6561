"""A node as ``noderpc start`` starts it, in processes of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers.until import PATIENCE, until

from ..helpers.http import get

COMMAND = [sys.executable, "-c", "from flask_noderpc.cli import main; main()", "start"]
ANY_PORTS = (
    *("--rpc.laddr", "tcp://127.0.0.1:0"),
    *("--api.address", "tcp://127.0.0.1:0"),
    *("--json-rpc.address", "127.0.0.1:0"),
    *("--json-rpc.ws-address", "127.0.0.1:0"),
)


def run_start(*flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, without the variables of the tests themselves."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("NODERPC_")}
    return subprocess.run(
        [*COMMAND, *flags],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**own, **environment},
    )


class Node:
    """A running node."""

    def __init__(
        self,
        folder: Path,
        *flags: str,
        command: list[str] | None = None,
        log: str = "node.log",
    ) -> None:
        self.log = folder / log
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [*(command or [*COMMAND, "--home", str(folder)]), *flags],
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def url(self, title: str = "node RPC") -> str:
        """Where it serves something, once it says so."""
        found: list[str] = []

        def said() -> bool:
            assert self._process.poll() is None, self.log.read_text()
            found[:] = re.findall(rf"^{title} +(\S+)", self.log.read_text(), re.MULTILINE)
            return bool(found)

        until(said, f"the address of the {title}")
        return found[0].replace("localhost", "127.0.0.1")

    def get(self, path: str) -> Any:
        """The result of a GET."""
        return get(self.url(), path).result

    def height(self) -> int:
        """The latest."""
        return int(self.get("/status")["sync_info"]["latest_block_height"])

    def until_up(self) -> None:
        """Wait until it answers."""

        def answers() -> bool:
            try:
                self.get("/health")
            except OSError:
                return False
            return True

        until(answers, "an answer")

    def children(self) -> list[int]:
        """The processes under it that are there."""
        listed = subprocess.run(
            ["pgrep", "-P", str(self._process.pid)], capture_output=True, text=True
        )
        return [int(line) for line in listed.stdout.split()]

    def tell(self, number: int) -> None:
        """Send it a signal, if it is there."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def has_ended(self) -> bool:
        """Return true if its parent process has."""
        return self._process.poll() is not None

    def end(self, number: int = signal.SIGTERM) -> int:
        """Tell it to end; its exit status."""
        self.tell(number)
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        """End it and all that are left."""
        for pid in (*self.children(), self._process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait(PATIENCE)


@contextmanager
def started(
    folder: Path, *flags: str, command: list[str] | None = None, log: str = "node.log"
) -> Iterator[Node]:
    """A node that listens where nobody else does."""
    node = Node(folder, *([] if command else ANY_PORTS), *flags, command=command, log=log)
    try:
        yield node
    except BaseException:
        print(f"== {node.log.name}", node.log.read_text(), sep="\n")
        raise
    finally:
        node.kill()


def refusal(*flags: str, command: list[str] | None = None, status: int = os.EX_CONFIG) -> str:
    """What is said where it can't start."""
    ended = subprocess.run(
        [*(command or [*COMMAND, *ANY_PORTS]), *flags],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == status, ended
    return without_warnings(ended.stderr)


def without_warnings(said: str) -> str:
    """What is said beside warnings: those of variables that these tests have themselves."""
    lines = (line for line in said.splitlines() if " WARNING: " not in line)
    return "\n".join(lines).strip()
