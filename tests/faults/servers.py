"""One node under each server with websockets, in a separate process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.until import PATIENCE

from ..helpers.http import get
from ..helpers.require import require_library
from .processes import ROOT, is_long

SERVERS = ("werkzeug", "gthread", "gevent", "pywsgi")
"""Werkzeug's threads, two worker classes of gunicorn, and gevent.pywsgi with patching."""

SOME = SERVERS if is_long() else ("werkzeug", "pywsgi")
"""Servers of the short form: one with threads, and one with greenlets."""

UNPATCHED = "unpatched"
"""gevent.pywsgi in an app that did not call gevent's patch_all()."""

# Seconds that gunicorn waits for open connections when it gets the signal to stop; a gevent
# worker
# notices the signal up to a second later.
GRACE_S = 2

_APP = "tests.faults.served:create_app()"
_GUNICORN = (
    f"-m gunicorn --bind fd://%d --threads 1200 --worker-connections 1300"
    f" --graceful-timeout {GRACE_S} --log-level warning -k %s {_APP}"
)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    kind: str
    url: str
    process: subprocess.Popen[bytes]
    _log: Path

    def get(self, path: str) -> Any:
        """Return the result of a route, or another view's response unchanged."""
        found = get(self.url, path).raise_for_status().json
        return found["result"] if isinstance(found, dict) and "result" in found else found

    def census(self) -> dict[str, int]:
        """Return counts of files, tasks, threads and memory of the process that responds."""
        found: dict[str, int] = self.get("/census")
        return found

    def log(self) -> str:
        """Return what the server has logged."""
        return self._log.read_text()

    def stop(self) -> int:
        """Ask the server to end; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextmanager
def serving(
    kind: str, database: Path, timing: dict[str, float] | None = None, **settings: Any
) -> Iterator[Server]:
    """Run a node under this kind of server; ``settings`` are the mount's, ``timing`` is for
    ``Timing``."""
    settings = {"database": str(database), "block_interval": 0.02, **settings}
    environment = {
        **os.environ,
        **{
            f"FLASK_NODERPC_{name.upper()}": json.dumps(value)
            for name, value in settings.items()
        },
        "TIMING": json.dumps(timing or {}),
    }
    # The socket listens before the server runs, so early connections wait in its queue.
    with socket.create_server(("127.0.0.1", 0), backlog=2000) as listener:
        port = listener.getsockname()[1]
        # Several servers of one kind may use one database.
        log = database.with_suffix(f".{kind}.{port}.log")
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, *_command(kind, listener.fileno())],
                cwd=ROOT,
                env=environment,
                pass_fds=[listener.fileno()],
                stderr=out,
                start_new_session=True,
            )
    try:
        server = Server(kind, f"http://127.0.0.1:{port}", process, log)
        # A signal before the server runs would end it, so wait for a response.
        server.census()
        yield server
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE)
    finally:
        # The server has its own session, so gunicorn's workers are killed together with it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
    assert process.returncode == 0, log.read_text()


def _command(kind: str, descriptor: int) -> list[str]:
    if kind not in ("gthread", "gevent"):
        module = "patched" if kind == "pywsgi" else "served"
        return ["-m", f"tests.faults.{module}", kind, str(descriptor)]
    require_library("gunicorn")
    from gunicorn.config import KNOWN_SETTINGS

    words = (_GUNICORN % (descriptor, kind)).split()
    if any(setting.name == "control_socket_disable" for setting in KNOWN_SETTINGS):
        words.insert(2, "--no-control-socket")
    return words
