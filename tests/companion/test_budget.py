"""Tests that the processes of ``noderpc start`` share one rate limit towards a node."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flask_noderpc.testing.node import app_for, run_node, serve
from tests.helpers.until import until
from tests.server.node_process import started

from .test_follow import grown

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

pytestmark = pytest.mark.integration

RATE, CALLS = 60, 200


def test_a_node_gets_no_more_than_its_rate(tmp_path: Path) -> None:
    """The follower and the workers share the rate, for all requests of clients."""
    calls: list[float] = []
    with run_node(dialect="comet-0.38") as node:
        app = app_for(grown(node, 5).chain, dialect="comet-0.38")
        answer = app.wsgi_app

        def count(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            asked = json.loads(body) if body else []
            calls.extend([time.monotonic()] * (len(asked) if isinstance(asked, list) else 1))
            environ["wsgi.input"] = BytesIO(body)
            return answer(environ, start)

        app.wsgi_app = count  # type: ignore[assignment, method-assign]
        flags = ("--workers", "2", "--upstream-rate", str(RATE), "--trust-period", "99999d")
        with serve(app) as url, started(tmp_path, "--upstream", url, *flags) as companion:
            companion.until_up()
            until(lambda: companion.height() >= 5, "the blocks")
            began = time.monotonic()
            with ThreadPoolExecutor(8) as clients:
                paths = [f'/check_tx?tx="key{number}=1"' for number in range(CALLS)]
                answers = list(clients.map(companion.get, paths))
            seconds = time.monotonic() - began
    assert [each["code"] for each in answers] == [0] * CALLS
    # Each process may begin with one request at once, which may be a batch of 10 calls.
    assert len([at for at in calls if began <= at <= began + seconds]) <= RATE * seconds + 30
