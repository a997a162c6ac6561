from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from flask_noderpc.testing.node import app_for, serve

from . import chain


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chain.PeeredBackend]:
    made = chain.backend(Path(tmp_path_factory.mktemp("chain")))
    yield made
    made.close()


@pytest.fixture(scope="module")
def client(backend: chain.PeeredBackend) -> FlaskClient:
    return app_for(backend, max_response_bytes=20_000).test_client()


@pytest.fixture(scope="module")
def url(backend: chain.PeeredBackend) -> Iterator[str]:
    """Return the URL of a real socket with the same chain."""
    with serve(app_for(backend)) as address:
        yield address
