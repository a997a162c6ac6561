"""Cassette: a node's responses to the requests of a test, recorded once and then replayed
without the node."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from werkzeug.serving import make_server

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_JSON = [("Content-Type", "application/json")]
_TIMEOUT_S = 60.0


class NotRecorded(AssertionError):
    """A test has sent requests that its cassette does not contain, or the cassette can't be
    recorded."""


class Cassette:
    """WSGI application that replays recorded responses: for equal requests in recorded order,
    repeating the last one.

    If the file does not exist, requests are forwarded to ``upstream`` and recorded. Raise
    :exc:`NotRecorded` if there is neither a file nor an upstream.
    """

    def __init__(self, path: Path, upstream: str = "") -> None:
        self._path, self._upstream = path, upstream.rstrip("/")
        self._records = not path.exists()
        if self._records and not upstream:
            raise NotRecorded(
                f"{path} does not exist: pass upstream, the URL of a node, to record it"
            )
        self._answers: dict[str, list[Any]] = {}
        if not self._records:
            self._answers = json.loads(path.read_text())
        self._played: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.missing: list[str] = []
        """Requests that were not recorded."""

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Respond to a request."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if environ["REQUEST_METHOD"] == "POST":
            found = {"status": 200, "body": self._post(json.loads(body))}
        else:
            query = environ.get("QUERY_STRING", "")
            path = environ["PATH_INFO"] + (f"?{query}" if query else "")
            failure = {"status": 500, "body": {"error": "not recorded"}}
            found = self._answer(f"GET {path}", lambda: self._fetch(path), failure)
        start_response(f"{found['status']} -", _JSON)
        return [json.dumps(found["body"]).encode()]

    def _post(self, calls: Any) -> Any:
        if isinstance(calls, list):
            return [self._call(each) for each in calls]
        return self._call(calls)

    def _call(self, call: dict[str, Any]) -> dict[str, Any]:
        asked = {"method": call.get("method"), "params": call.get("params") or {}}
        key = json.dumps(asked, sort_keys=True)
        error = {"code": -32603, "message": "Internal error", "data": f"not recorded: {key}"}
        found = self._answer(key, lambda: self._ask(asked), {"error": error})
        return {"jsonrpc": "2.0", "id": call.get("id"), **found}

    def _ask(self, call: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, **call}).encode()
        answer: dict[str, Any] = self._fetch("/", body)["body"]
        return {name: answer[name] for name in ("result", "error") if name in answer}

    def _fetch(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        request = Request(self._upstream + path, body, dict(_JSON))
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as response:
                return {"status": response.status, "body": json.loads(response.read())}
        except HTTPError as error:
            return {"status": error.code, "body": json.loads(error.read())}

    def _answer(self, key: str, ask: Callable[[], Any], failure: Any) -> Any:
        if self._records:
            found = ask()
            with self._lock:
                self._answers.setdefault(key, []).append(found)
            return found
        with self._lock:
            answers = self._answers.get(key)
            if answers is None:
                self.missing.append(key)
                return failure
            place = self._played[key]
            self._played[key] += 1
        return answers[min(place, len(answers) - 1)]

    def finish(self) -> None:
        """Write the recorded responses; raise :exc:`NotRecorded` if a request was missing."""
        if self._records:
            self._path.write_text(json.dumps(self._answers, indent=1) + "\n")
        elif self.missing:
            requests = "\n".join(dict.fromkeys(self.missing))
            raise NotRecorded(
                f"{self._path} lacks these requests; remove the file to record it again:\n"
                f"{requests}"
            )


@contextmanager
def play(path: Path, upstream: str = "") -> Iterator[str]:
    """Serve a cassette in this context; yield its URL."""
    cassette = Cassette(path, upstream)
    server = make_server("127.0.0.1", 0, cassette, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    cassette.finish()
