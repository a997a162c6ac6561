"""Tests that a store gets its genesis once, and reports what is missing before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base.application import InitChain
from flask_noderpc.errors import InvalidBlock, StoreError
from flask_noderpc.testing.chains import ChainMaker

from .conftest import OpenStore


def test_a_chain_is_initialised_once(store: SQLiteBackend, maker: ChainMaker) -> None:
    store.append_block(maker.block(b"a=1"))

    store.init_chain(maker.genesis, maker.state)

    assert store.reads.latest_height() == 1
    assert store.reads.genesis() == maker.genesis


def test_another_genesis_is_refused(store: SQLiteBackend) -> None:
    another = ChainMaker(chain_id="another")

    with pytest.raises(StoreError, match="'sample-chain', with another genesis"):
        store.init_chain(another.genesis, another.state)


def test_has_chain_is_true_after_init_chain(open_store: OpenStore, maker: ChainMaker) -> None:
    backend = open_store()
    assert not backend.has_chain()

    backend.init_chain(maker.genesis, maker.state)

    assert backend.has_chain()


def test_a_genesis_with_invalid_validators_is_refused(
    open_store: OpenStore, maker: ChainMaker
) -> None:
    twice = maker.genesis.validators[0]
    genesis = replace(maker.genesis, validators=(twice, twice))
    backend = open_store()

    with pytest.raises(InvalidBlock, match="genesis validators"):
        backend.init_chain(genesis, InitChain())

    assert not backend.has_chain()


def test_a_store_without_a_chain_asks_for_init_chain(
    open_store: OpenStore, maker: ChainMaker
) -> None:
    backend = open_store()
    for use in (
        backend.reads.genesis,
        backend.head,
        lambda: backend.append_block(maker.block()),
        lambda: backend.reads.consensus_params(1),
    ):
        with pytest.raises(StoreError, match="call init_chain or init_at first"):
            use()
