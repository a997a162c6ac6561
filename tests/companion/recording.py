"""Recordings of a node's responses to a companion, which tests play back without the node."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ..differential.http_client import Ask, ask


@dataclass
class Recording:
    """Responses of one node whose chain has stopped."""

    calls: dict[str, str] = field(default_factory=dict)
    """The rest of the response behind its ID, by method and parameters."""
    paths: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Status and body of the response to a GET."""
    printed: list[str] = field(default_factory=list)
    """Output of a client that had read from the node."""

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Read a recording that :meth:`write` stored."""
        kept = json.loads(gzip.decompress(path.read_bytes()))
        paths = {asked: (status, body) for asked, (status, body) in kept["paths"].items()}
        return cls(kept["calls"], paths, kept["printed"])

    def write(self, path: Path) -> None:
        """Write the recording to a file."""
        kept = {"calls": self.calls, "paths": self.paths, "printed": self.printed}
        path.write_bytes(gzip.compress(json.dumps(kept).encode(), mtime=0))


@contextmanager
def recorded(recording: Recording, node: str) -> Iterator[str]:
    """Forward calls to a node and record its responses; yield the URL for the companion."""
    kept = threading.Lock()

    def answer(call: Any) -> str:
        # The recorded calls have no ID, so the request and the response use ID 0.
        request = Ask("", "POST", body=json.dumps({**call, "id": 0}))
        _, start, told = ask(node, request).body.partition('{"jsonrpc":"2.0","id":0,')
        assert start, call
        with kept:
            recording.calls[_key(call)] = told.strip()
        return told.strip()

    with _served(answer) as url:
        yield url


@contextmanager
def played(recording: Recording, *, is_complete: bool = True) -> Iterator[str]:
    """Play the recorded responses; yield the URL for the companion.

    Fail at the end if calls were missing in the recording, unless it need not be complete.
    """
    missing: list[str] = []

    def answer(call: Any) -> str:
        told = recording.calls.get(_key(call))
        if told is None:
            missing.append(_key(call))
            return '"error":{"code":-32603,"message":"not in the recording","data":""}}'
        return told

    with _served(answer) as url:
        yield url
    assert not is_complete or missing == [], "these calls are not in the recording"


def _key(call: Any) -> str:
    return f"{call['method']} {json.dumps(call.get('params', {}), sort_keys=True)}"


@contextmanager
def _served(answer: Callable[[Any], str]) -> Iterator[str]:
    """Serve JSON-RPC and batches of it. Without a websocket the companion polls."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(404, b"")

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            calls = asked if isinstance(asked, list) else [asked]
            told = ",".join(
                f'{{"jsonrpc":"2.0","id":{json.dumps(call["id"])},{answer(call)}'
                for call in calls
            )
            self._send(200, (f"[{told}]" if isinstance(asked, list) else told).encode())

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
