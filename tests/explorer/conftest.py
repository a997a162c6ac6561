from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from flask_noderpc import EmbeddedChain, NodeRPC, explorer_bp
from flask_noderpc.extension import mounts


@dataclass(frozen=True)
class Site:
    """An app with an explorer, and its chain, whose blocks the test makes."""

    app: Flask
    chain: EmbeddedChain

    @property
    def client(self) -> FlaskClient:
        return self.app.test_client()

    def grow(self, *txs: bytes) -> int:
        """Produce a block of transactions; return its height."""
        for tx in txs:
            assert self.chain.mempool.submit(tx).code == 0, tx
        return self.chain.produce()


MakeSite = Callable[..., Site]


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[MakeSite]:
    """Return a function that makes apps with chains, which are closed at the end."""
    made: list[Site] = []

    def make(**settings: Any) -> Site:
        app = Flask("site", instance_path=str(tmp_path / str(len(made))))
        NodeRPC(app, produce=False, **settings)
        app.register_blueprint(explorer_bp)
        chain = mounts(app)["noderpc"].backend
        assert isinstance(chain, EmbeddedChain)
        chain.start()
        made.append(Site(app, chain))
        return made[-1]

    yield make
    for site in made:
        site.chain.close()


@pytest.fixture
def site(make_site: MakeSite) -> Site:
    return make_site()
