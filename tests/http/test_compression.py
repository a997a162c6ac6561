"""Large responses are compressed for clients that accept gzip and are on another machine."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from flask_noderpc.testing.node import app_for

from . import chain as sample

REMOTE, LOCAL = "192.0.2.7", "127.0.0.1"
LEAST = 500
LARGE, SMALL = "/block?height=2", "/health"


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
    least: int = LEAST,
    headers: Mapping[str, str] | None = None,
) -> TestResponse:
    app = app_for(backend, gzip_min_bytes=least, cors_origins="https://page.example")
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
    ("path", "accepts", "address", "least"),
    [
        (SMALL, "gzip", REMOTE, LEAST),
        (LARGE, "", REMOTE, LEAST),
        (LARGE, "br, deflate", REMOTE, LEAST),
        (LARGE, "gzip;q=0, *", REMOTE, LEAST),
        (LARGE, "deflate, gzip; q=0.000 ", REMOTE, LEAST),
        (LARGE, "gzip;q=x, \xff", REMOTE, LEAST),
        (LARGE, "gzip", LOCAL, LEAST),
        (LARGE, "gzip", "::1", LEAST),
        (LARGE, "gzip", "", LEAST),
        (LARGE, "gzip", REMOTE, 1_000_000),
        (LARGE, "gzip", REMOTE, 0),
    ],
)
def test_others_are_as_they_are(
    backend: sample.PeeredBackend, path: str, accepts: str, address: str, least: int
) -> None:
    response = ask(backend, path, accepts, address, least=least)
    assert "Content-Encoding" not in response.headers
    assert response.get_json()["result"] is not None


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


def test_errors_are_compressed_too(backend: sample.PeeredBackend) -> None:
    path = "/block?height=99"
    compressed, plain = ask(backend, path, least=1), ask(backend, path, address=LOCAL)
    assert gzip.decompress(compressed.data) == plain.data
    assert plain.get_json()["error"]
