"""A node in separate processes, started as by ``noderpc start``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers.process import Process, killed
from tests.helpers.until import PATIENCE

from ..helpers.http import get

COMMAND = [sys.executable, "-m", "flask_noderpc", "start"]
ANY_PORTS = (
    *("--rpc.laddr", "tcp://127.0.0.1:0"),
    *("--api.address", "tcp://127.0.0.1:0"),
    *("--json-rpc.address", "127.0.0.1:0"),
    *("--json-rpc.ws-address", "127.0.0.1:0"),
)

# Python's "site" imports this file first in each process of the node.
_LIMITED = """
import sys
from functools import partial
from importlib.machinery import PathFinder


class Finder:
    def find_spec(name, path, target=None):
        if name != "flask_noderpc.server.connection":
            return None
        spec = PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            module.Limits = partial(module.Limits, **{limits!r})

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder)
"""


def client_seconds(seconds: float, idle: float = 120.0) -> dict[str, float]:
    """Return limits of the seconds that a client may take for each step, and may be idle."""
    return {"header_s": seconds, "body_s": seconds, "write_s": seconds, "idle_s": idle}


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


class Node(Process):
    """A running node."""

    def __init__(
        self,
        folder: Path,
        *flags: str,
        command: list[str] | None = None,
        log: str = "node.log",
        limits: Mapping[str, float] | None = None,
    ) -> None:
        start = command or [*COMMAND, "--home", str(folder)]
        # One worker starts fastest. NODERPC_WORKERS=auto runs the tests with the default.
        environment = {"NODERPC_WORKERS": os.environ.get("NODERPC_WORKERS", "1")}
        if limits:
            environment |= self._limited(folder, dict(limits))
        super().__init__([*start, *flags], folder / log, environment)

    @staticmethod
    def _limited(folder: Path, limits: dict[str, float]) -> dict[str, str]:
        """Return the environment of processes whose server has these connection limits."""
        site = folder / "site"
        site.mkdir()
        text = _LIMITED.replace("{limits!r}", repr(limits))
        (site / "sitecustomize.py").write_text(text)
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {"PYTHONPATH": os.pathsep.join(paths)}

    def url(self, title: str = "node RPC") -> str:
        """Return the URL of a server, once the banner names it."""
        found: list[str] = []

        def said() -> bool:
            found[:] = re.findall(rf"^{title} +(\S+)", self.log.read_text(), re.MULTILINE)
            return bool(found)

        self.until(said, f"the address of the {title}")
        return found[0].replace("localhost", "127.0.0.1")

    def get(self, path: str) -> Any:
        """Return the result of a GET."""
        return get(self.url(), path).result

    def height(self) -> int:
        """Return the latest height."""
        return int(self.get("/status")["sync_info"]["latest_block_height"])

    def until_up(self) -> None:
        """Wait until the node responds."""
        self.until_answered(lambda: self.get("/health"))

    def until_second_block(self) -> None:
        """Wait for the second block, before which CosmJS refuses a status: the first header of
        a chain without an app hash in its genesis document has none, a real node's too."""
        self.until_up()
        self.until(lambda: self.height() >= 2, "the second block")


@contextmanager
def started(
    folder: Path,
    *flags: str,
    command: list[str] | None = None,
    log: str = "node.log",
    limits: Mapping[str, float] | None = None,
) -> Iterator[Node]:
    """Start a node at free ports; ``limits`` apply to its connections."""
    flags = flags if command else (*ANY_PORTS, *flags)
    with killed(Node(folder, *flags, command=command, log=log, limits=limits)) as node:
        yield node


def refusal(*flags: str, command: list[str] | None = None, status: int = os.EX_CONFIG) -> str:
    """Return the error of a node that can't start."""
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
    """Return the output without warnings, such as those about variables of these tests."""
    lines = (line for line in said.splitlines() if " WARNING: " not in line)
    return "\n".join(lines).strip()
