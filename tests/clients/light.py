"""CometBFT's light client as a process: it queries our nodes, and tests query its proxy."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.helpers.process import Process, killed
from tests.helpers.until import PATIENCE, until

# The chains of tests are years old, so trust them for a century.
_PERIOD = "876000h"


class Refused(Exception):
    """The error that the light client returned."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The trusted block of a light client."""

    chain_id: str
    height: int
    hash: bytes


class _Local(HTTPConnection):
    """A connection to a socket in the file system, which no other process can have taken."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.host)


def _listens(address: Path) -> bool:
    connection = _Local(str(address), timeout=PATIENCE)
    with closing(connection), suppress(FileNotFoundError, ConnectionRefusedError):
        connection.connect()
        return True
    return False


@dataclass(frozen=True, slots=True)
class LightClient:
    """A running light client."""

    address: str

    def ask(self, route: str, **params: object) -> Any:
        """Return the verified response of the light client's proxy; raise :exc:`Refused` for an
        error."""
        with closing(_Local(self.address, timeout=PATIENCE)) as connection:
            connection.request(
                "GET", f"/{route}?{urlencode(params)}", headers={"Host": "localhost"}
            )
            answer = json.loads(connection.getresponse().read())
        if "error" in answer:
            raise Refused(answer["error"]["data"])
        return answer["result"]


@dataclass(frozen=True, slots=True)
class Question:
    """A request to a light client's proxy."""

    route: str
    params: dict[str, object] = field(default_factory=dict)

    def to(self, client: LightClient) -> Any:
        """Return the verified response; raise :exc:`Refused`."""
        return client.ask(self.route, **self.params)


@contextmanager
def light_client(
    cometbft: Path, trust: Trust, primary: str, witness: str, *flags: str
) -> Iterator[LightClient]:
    """Run a light client; raise :exc:`Refused` if it does not start."""
    # The path of a Unix socket must be short.
    with tempfile.TemporaryDirectory() as folder:
        address, log = Path(folder, "proxy"), Path(folder, "log")
        words = [str(cometbft), "light", trust.chain_id, "-p", primary, "-w", witness, *flags]
        words += ["--height", str(trust.height), "--hash", trust.hash.hex()]
        words += ["--laddr", f"unix://{address}", "--home-dir", folder]
        words += ["--trusting-period", _PERIOD]
        with killed(Process(words, log)) as process:
            until(lambda: _listens(address) or process.has_ended(), "it begins or ends")
            if process.has_ended():
                raise Refused(log.read_text())
            yield LightClient(str(address))
