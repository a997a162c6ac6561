"""Tests that large responses are compressed for clients on other machines that accept gzip."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from flask_noderpc.testing.node import app_for
from flask_noderpc.web.rules import render

from . import chain as sample

REMOTE, LOCAL = "192.0.2.7", "127.0.0.1"
LEAST = 500
LARGE, SMALL = "/block?height=2", "/health"


@pytest.fixture(autouse=True)
def _least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "MIN_BYTES", LEAST)


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sample.PeeredBackend]:
    made = sample.backend(Path(tmp_path_factory.mktemp("chain")))
    yield made
    made.close()


def ask(
    backend: sample.PeeredBackend,
    path: str = LARGE,
    accepts: str = "gzip, deflate",
    address: str = REMOTE,
    *,
    headers: Mapping[str, str] | None = None,
) -> TestResponse:
    app = app_for(backend, cors_origins="https://page.example")
    client = app.test_client()
    return client.get(
        path,
        headers={"Accept-Encoding": accepts, **(headers or {})},
        environ_overrides={"REMOTE_ADDR": address},
    )


@pytest.mark.parametrize("accepts", ["gzip, deflate, br", "br;q=1, GZIP;q=0.5", "gzip ;q=1.0,"])
def test_a_large_response_is_compressed(backend: sample.PeeredBackend, accepts: str) -> None:
    plain, compressed = ask(backend, address=LOCAL), ask(backend, accepts=accepts)
    assert gzip.decompress(compressed.data) == plain.data
    assert compressed.headers["Content-Encoding"] == "gzip"
    assert compressed.content_length == len(compressed.data) < len(plain.data)
    assert compressed.content_type == plain.content_type
    assert compressed.headers["ETag"] == f"W/{plain.headers['ETag']}"


@pytest.mark.parametrize(
    ("path", "accepts", "address"),
    [
        (SMALL, "gzip", REMOTE),
        (LARGE, "", REMOTE),
        (LARGE, "br, deflate", REMOTE),
        (LARGE, "gzip;q=0, *", REMOTE),
        (LARGE, "deflate, gzip; q=0.000 ", REMOTE),
        (LARGE, "gzip;q=x, \xff", REMOTE),
        (LARGE, "gzip", LOCAL),
        (LARGE, "gzip", "::1"),
        (LARGE, "gzip", ""),
    ],
)
def test_others_are_as_they_are(
    backend: sample.PeeredBackend, path: str, accepts: str, address: str
) -> None:
    response = ask(backend, path, accepts, address)
    assert "Content-Encoding" not in response.headers
    assert response.get_json()["result"] is not None


def test_a_response_is_compressed_from_a_number_of_bytes_on(
    backend: sample.PeeredBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(ask(backend, address=LOCAL).data)
    for least, is_compressed in ((size + 1, False), (size, True)):
        monkeypatch.setattr(render, "MIN_BYTES", least)
        assert ("Content-Encoding" in ask(backend).headers) is is_compressed


@pytest.mark.parametrize("accepts", ["gzip", ""])
def test_caches_know_that_responses_differ(backend: sample.PeeredBackend, accepts: str) -> None:
    response = ask(backend, LARGE, accepts, headers={"Origin": "https://page.example"})
    assert response.headers.getlist("Vary") == ["Accept-Encoding, Origin"]


def test_a_client_that_has_it_is_told_so(backend: sample.PeeredBackend) -> None:
    for accepts in ("gzip", ""):
        full = ask(backend, accepts=accepts)
        known = {"If-None-Match": full.headers["ETag"]}
        response = ask(backend, accepts=accepts, headers=known)
        assert (response.status_code, response.data) == (304, b"")
        assert "Content-Encoding" not in response.headers
        for name in ("ETag", "Vary", "Cache-Control"):
            assert response.headers[name] == full.headers[name]


def test_errors_are_compressed_too(
    backend: sample.PeeredBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "MIN_BYTES", 1)
    path = "/block?height=99"
    packed, plain = ask(backend, path), ask(backend, path, address=LOCAL)
    assert gzip.decompress(packed.data) == plain.data
    assert plain.get_json()["error"]
