"""One chain for all tests of a module; each test has its own accounts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask import Flask
from web3 import HTTPProvider, Web3

from flask_noderpc import EmbeddedChain
from flask_noderpc.testing.node import serve

from .fixtures import chain_of, dev_app


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    """One chain for all tests of a module, each with separate accounts, as its processes
    start slowly."""
    made = dev_app(tmp_path_factory.mktemp("dev"))
    yield made
    chain_of(made).close()


@pytest.fixture(scope="module")
def chain(app: Flask) -> EmbeddedChain:
    return chain_of(app)


@pytest.fixture(scope="module")
def url(app: Flask) -> Iterator[str]:
    with serve(app) as found:
        yield found


@pytest.fixture
def w3(url: str) -> Web3:
    return Web3(HTTPProvider(f"{url}/evm"))
