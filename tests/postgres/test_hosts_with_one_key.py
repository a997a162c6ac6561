"""Tests of two hosts with a copy of one validator key: both records and the database prevent
double signing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from flask_noderpc import ConfigurationError, EmbeddedChain
from flask_noderpc.chain import home
from flask_noderpc.errors import StoreError

RECORD = "data/priv_validator_state.json"


def signed(folder: Path) -> tuple[int, int]:
    found = json.loads((folder / RECORD).read_text())
    return int(found["height"]), found["round"]


@pytest.fixture
def hosts(url: str, tmp_path: Path) -> Iterator[tuple[EmbeddedChain, EmbeddedChain]]:
    folders = tmp_path / "one", tmp_path / "two"
    home.create(folders[0], "one-key", 1_700_000_000 * 10**9)
    shutil.copytree(*folders)
    one, two = (EmbeddedChain(url, home=folder, produce=False) for folder in folders)
    with closing(one), closing(two):
        yield one, two


def handed_over(chain: EmbeddedChain) -> None:
    chain.block_scheduler().producer.release_lease("")


def test_a_host_that_ended_after_its_signature_goes_on_above_the_other(
    hosts: tuple[EmbeddedChain, EmbeddedChain], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = hosts
    one.produce()

    def fail(*args: object, **options: object) -> None:
        raise StoreError("the database is gone")

    with monkeypatch.context() as patch:
        patch.setattr(one.store, "append_block", fail)
        with pytest.raises(StoreError):
            one.produce()
    handed_over(one)
    assert (signed(one.home), signed(two.home)) == ((2, 0), (0, 0))
    for height in (2, 3):
        assert two.produce() == height
    handed_over(two)

    assert one.produce() == 4

    assert one.store.verify() == 4
    assert (signed(one.home), signed(two.home)) == ((4, 0), (3, 0))


def test_a_host_without_a_record_takes_it_from_the_database(
    hosts: tuple[EmbeddedChain, EmbeddedChain],
) -> None:
    one, two = hosts
    one.produce()
    handed_over(one)
    (two.home / RECORD).unlink()

    assert two.produce() == 2

    assert signed(two.home) == (2, 0)


def test_a_host_whose_record_is_ahead_of_the_database_does_not_sign(
    hosts: tuple[EmbeddedChain, EmbeddedChain],
) -> None:
    one, two = hosts
    one.produce()
    handed_over(one)
    (two.home / RECORD).write_text('{"height": "9", "round": 0, "step": 3}')

    with pytest.raises(ConfigurationError, match="signed height 9"):
        two.produce()
