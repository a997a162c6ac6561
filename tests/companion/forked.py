"""A node of a fork, which serves what CometBFT does except for changes to the JSON of its
results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any

from werkzeug.test import run_wsgi_app

from flask_noderpc import DIALECTS
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.testing.node import app_for, serve

Change = Callable[[Any], Any]
"""Changes the JSON of a result in place, or returns another."""


@contextmanager
def forked_node(
    backend: ChainBackend, dialect: str, changes: Mapping[str, Change]
) -> Iterator[str]:
    """Serve a backend with changed results, by method; yield the URL."""
    app = app_for(backend, dialect=dialect)
    app.wsgi_app = _Forked(app.wsgi_app, dialect, changes)  # type: ignore[method-assign]
    with serve(app) as url:
        yield url


def sei_results(result: Any) -> Any:
    """Change results of 0.34 into the form of Sei's nodes."""
    for tx in result["txs_results"] or ():
        for name in [name for name, value in tx.items() if value in (0, "0", "", None, [])]:
            del tx[name]
        for name in ("gas_wanted", "gas_used"):
            if name in tx:
                tx[name] = int(tx[name])
    begin, end = (result[f"{name}_block_events"] for name in ("begin", "end"))
    return {
        "height": result["height"],
        "txs_results": result["txs_results"],
        "total_gas_used": "17",
        "finalize_block_events": (begin or []) + (end or []) or None,
        "validator_updates": result["validator_updates"]
        and [
            {"pub_key": _sei_key(each["pub_key"]), "power": each.get("power", "0")}
            for each in result["validator_updates"]
        ],
        "consensus_param_updates": result["consensus_param_updates"],
    }


def _sei_key(key: Any) -> Any:
    return {"type": "tendermint/PubKeyEd25519", "value": key["Sum"]["value"]["ed25519"]}


def sei_block(result: Any) -> None:
    """Make a block of 0.34 one of Sei's."""
    block = result["block"]
    block["evidence"] = block["evidence"]["evidence"]
    block["header"]["version"].setdefault("app", "0")


class _Forked:
    def __init__(self, app: Any, dialect: str, changes: Mapping[str, Change]) -> None:
        self._app, self._changes = app, changes
        self._encode = DIALECTS[dialect].envelope.json

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        asked = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(asked)
        parts, status, headers = run_wsgi_app(self._app, environ, buffered=True)
        body = self._changed(environ["PATH_INFO"].strip("/"), asked, b"".join(parts))
        headers["Content-Length"] = str(len(body))
        start_response(status, list(headers))
        return [body]

    def _changed(self, path: str, asked: bytes, body: bytes) -> bytes:
        try:
            answer = json.loads(body)
        except ValueError:
            # The index page is HTML.
            return body
        calls = json.loads(asked) if asked else {"id": -1, "method": path}
        methods = {c["id"]: c["method"] for c in (calls if type(calls) is list else [calls])}
        for each in answer if type(answer) is list else [answer]:
            change = self._changes.get(methods.get(each.get("id"), ""))
            if change is not None and "result" in each:
                changed = change(each["result"])
                each["result"] = each["result"] if changed is None else changed
        return self._encode(answer)
