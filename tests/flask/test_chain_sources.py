"""Tests that a feature's chain replaces the embedded one if settings ask for it."""

from __future__ import annotations

import pytest
from flask import Flask

from flask_noderpc import ChainBackend, ConfigurationError, MemoryChain, NodeRPC
from flask_noderpc.chain import source as chain_sources
from flask_noderpc.chain.source import ChainSource
from flask_noderpc.companion.settings import CompanionSettings
from flask_noderpc.feature import Feature
from flask_noderpc.testing import make_chain

from .conftest import MakeApp

HEIGHT = 7
OLD = CompanionSettings(trust="old")


class Archive(ChainSource):
    """A source of chains with its own dialect, selected by NODERPC_TRUST."""

    def check(self) -> None:
        if self.settings.dev:
            raise ConfigurationError("NODERPC_DEV is not for an archive")

    def backend(self) -> ChainBackend:
        self.check()
        chain = make_chain(HEIGHT)
        return ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))

    def dialect(self) -> str:
        return "comet-1.0"

    def description(self) -> str:
        return f"the archive {self.settings.value('trust')}"


class Other(Archive):
    """A second source."""


@pytest.fixture(autouse=True)
def _features(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"trust": f"{__name__}:Archive", "upstream_dialect": f"{__name__}:Other"}
    found = (Feature(name="archive", chain_sources=named),)
    monkeypatch.setattr(chain_sources, "features", lambda: found)


def served(app: Flask) -> tuple[str, int]:
    """Return the latest height, and the status of a path that only comet-1.0 has."""
    client = app.test_client()
    status = client.get("/status").get_json()["result"]
    return status["sync_info"]["latest_block_height"], client.get("/v1/health").status_code


@pytest.mark.features
def test_a_setting_asks_for_the_chain_and_its_dialect(make_app: MakeApp) -> None:
    app = make_app()
    NodeRPC(app, settings=[OLD])
    assert served(app) == (str(HEIGHT), 200)


@pytest.mark.features
def test_a_dialect_that_is_named_is_served(make_app: MakeApp) -> None:
    app = make_app(NODERPC_DIALECT="comet-0.38")
    NodeRPC(app, settings=[OLD])
    assert served(app) == (str(HEIGHT), 404)


@pytest.mark.features
def test_without_the_setting_the_chain_is_embedded(make_app: MakeApp) -> None:
    app = make_app(NODERPC_DIALECT="comet-0.38")
    NodeRPC(app)
    assert served(app)[0] != str(HEIGHT)


@pytest.mark.features
def test_a_backend_of_its_own_keeps_its_dialect(make_app: MakeApp) -> None:
    app, chain = make_app(NODERPC_TRUST="old"), make_chain(6)
    NodeRPC(
        app, backend=ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))
    )
    assert served(app) == ("6", 404)


@pytest.mark.features
def test_settings_that_do_not_fit_are_refused(make_app: MakeApp) -> None:
    with pytest.raises(ConfigurationError, match="NODERPC_DEV is not for an archive"):
        NodeRPC(make_app(), settings=[OLD], dev=True)


@pytest.mark.features
def test_settings_of_two_sources_are_refused(make_app: MakeApp) -> None:
    with pytest.raises(ConfigurationError, match="NODERPC_TRUST and NODERPC_UPSTREAM_DIAL"):
        NodeRPC(
            make_app(), settings=[CompanionSettings(trust="old", upstream_dialect="comet-0.38")]
        )
