"""Tests of ``open_store`` and ``stored_identity``, which open the store of a location."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from flask_noderpc import ConfigurationError, EmbeddedChain, SQLiteBackend
from flask_noderpc.backends import open_store, stored_identity
from flask_noderpc.backends.base.location import location_of
from flask_noderpc.errors import StoreError
from flask_noderpc.testing import SampleChain

URLS = ["mysql+x://user:secret@host/chain", "HTTPS://host/chain"]


@pytest.fixture
def filled(sample: SampleChain, full: SQLiteBackend, path: Path) -> Path:
    full.close()
    return path


@pytest.mark.sqlite
def test_a_file_name_is_a_sqlite_store(filled: Path, sample: SampleChain) -> None:
    with closing(open_store(filled)) as store:
        assert store.reads.latest_height() == len(sample.blocks)
        assert not store.read_only
        assert store.location.path == str(filled)


@pytest.mark.parametrize("as_uri", [False, True])
def test_a_read_only_store_refuses_writes(
    filled: Path, as_uri: bool, sample: SampleChain
) -> None:
    location = f"{filled.as_uri()}?cache=private" if as_uri else filled
    with closing(open_store(location, read_only=True)) as store:
        assert store.read_only
        assert store.reads.latest_height() == len(sample.blocks)
        with pytest.raises(StoreError):
            store.prune(1)


@pytest.mark.sqlite
def test_a_read_only_store_is_not_created(tmp_path: Path) -> None:
    missing = open_store(tmp_path / "missing.db", read_only=True)
    with closing(missing), pytest.raises(StoreError):
        missing.reads.latest_height()

    assert list(tmp_path.iterdir()) == []


def test_the_identity_is_that_of_the_stored_chain(filled: Path, sample: SampleChain) -> None:
    found = stored_identity(filled)

    assert found is not None
    assert found.chain_id == sample.genesis.chain_id
    assert stored_identity(filled.parent / "missing.db") is None


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("use", [open_store, stored_identity, EmbeddedChain, SQLiteBackend])
def test_a_url_of_another_scheme_is_refused(use: object, url: str) -> None:
    assert callable(use)
    with pytest.raises(ConfigurationError) as caught:
        use(url)

    scheme = url.partition(":")[0]
    text = str(caught.value)
    assert f"{scheme}:// " in text
    assert "SQLite" in text
    assert "secret" not in text


@pytest.mark.features
@pytest.mark.parametrize(
    "url", ["postgres://user:secret@host/chain", "postgresql://host/chain?password=secret"]
)
@pytest.mark.parametrize("use", [open_store, stored_identity, EmbeddedChain])
def test_a_password_in_a_url_is_refused(use: object, url: str) -> None:
    assert callable(use)
    with pytest.raises(ConfigurationError, match="PGPASSFILE") as caught:
        use(url)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("chain.db", "chain.db"),
        ("file:/data/chain.db?mode=ro", "/data/chain.db"),
        ("postgresql://user@db:5433/chain?poll_interval=1", "postgresql://db:5433/chain"),
        ("postgresql:///chain?host=/run/pg", "postgresql:///run/pg/chain"),
    ],
)
def test_a_location_has_a_name_for_errors(given: str, shown: str) -> None:
    assert location_of(given).display_name == shown
