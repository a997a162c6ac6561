"""Tests of chains whose validators have keys of other types: their commits are verified, or
refused."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.memory import MemoryChain
from flask_noderpc.domain.block import Commit
from flask_noderpc.domain.validator import (
    BLS12_381,
    ML_DSA_65,
    SECP256K1,
    SECP256K1ETH,
    PublicKey,
)
from flask_noderpc.errors import UpstreamError
from flask_noderpc.installation import install_hint
from flask_noderpc.protocol.comet.keys import (
    Bls12381PrivateKey,
    PrivateKey,
    Secp256k1EthPrivateKey,
    Secp256k1PrivateKey,
)
from flask_noderpc.testing.chains import ChainMaker, SampleChain

from .conftest import Serve, import_all, upstreams_at

KINDS = [SECP256K1, BLS12_381, ML_DSA_65, SECP256K1ETH]
# The height of the block with evidence.
LAST = 6


class MlDsaKey(PrivateKey):
    """A key of ML-DSA-65."""

    def __init__(self, seed: bytes) -> None:
        mldsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.mldsa")
        key = mldsa.MLDSA65PrivateKey.from_seed_bytes(seed)
        self._sign, self._point = key.sign, key.public_key().public_bytes_raw()

    @cached_property
    def public(self) -> PublicKey:
        return PublicKey(ML_DSA_65, self._point)


def needing(kind: type[PrivateKey], *libraries: str) -> Callable[[bytes], PrivateKey]:
    """Return a function that makes keys of a type, or skips the test without its libraries."""

    def make(seed: bytes) -> PrivateKey:
        for library in libraries:
            pytest.importorskip(library)
        return kind(seed)

    return make


MAKE: dict[str, Callable[[bytes], PrivateKey]] = {
    SECP256K1: needing(Secp256k1PrivateKey, "btclib_secp256k1"),
    BLS12_381: needing(Bls12381PrivateKey, "py_arkworks_bls12381"),
    ML_DSA_65: MlDsaKey,
    SECP256K1ETH: needing(Secp256k1EthPrivateKey, "btclib_secp256k1", "eth_hash"),
}


def chain_of(kind: str) -> SampleChain:
    """Return a chain of four validators, one of which has an ed25519 key."""
    seeds = [bytes([number]) * 32 for number in range(1, 5)]
    keys = [*map(MAKE[kind], seeds[:3]), PrivateKey(seeds[3])]
    maker = ChainMaker((10, 10, 10, 10), keys=keys)
    blocks = [maker.block(b"a=%d" % height) for height in range(1, LAST)]
    two = blocks[1].block.header
    blocks.append(maker.block(evidence=[maker.double_vote(0, two.height, two.time)]))
    blocks.append(maker.block())
    return SampleChain(maker.genesis, maker.state, tuple(blocks))


def node_of(chain: SampleChain) -> ChainBackend:
    return ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))


class Forger(MemoryChain):
    """A node whose commits have signatures of other messages."""

    def __init__(self, chain: SampleChain, kind: str) -> None:
        super().__init__(chain.genesis, chain.blocks, state=chain.state)
        self._forged = MAKE[kind](bytes([1]) * 32)

    def commit(self, height: int) -> Commit:
        commit = super().commit(height)
        wrong = self._forged.sign(b"another message")
        return replace(
            commit,
            signatures=tuple(
                replace(each, signature=wrong)
                if each.validator_address == self._forged.address
                else each
                for each in commit.signatures
            ),
        )


@pytest.mark.parametrize("kind", KINDS)
def test_commits_of_other_keys_are_verified(
    kind: str, store: SQLiteBackend, serve_node: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    chain = chain_of(kind)
    url = serve_node(node_of(chain), "comet-0.40")

    assert import_all(store, upstreams_at(url)) == (1, LAST)

    assert store.verify() == LAST
    assert "not verified" not in caplog.text
    types = {each.pub_key.type for each in store.reads.validators(3).validators}
    assert types == {kind, "ed25519"}
    assert len(store.reads.block(LAST)[1].evidence) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_signature_of_another_key_is_refused(
    kind: str, store: SQLiteBackend, serve_node: Serve
) -> None:
    url = serve_node(ChainBackend(Forger(chain_of(kind), kind)), "comet-0.40")

    with pytest.raises(UpstreamError, match="signature"):
        import_all(store, upstreams_at(url))


def test_signatures_that_no_library_verifies_are_refused(
    store: SQLiteBackend, serve_node: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the cure."""
    url = serve_node(node_of(chain_of(BLS12_381)), "comet-0.40")
    whole = builtins.__import__

    def importing(name: str, *args: Any, **options: Any) -> Any:
        if name == "py_arkworks_bls12381":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return whole(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", importing)
    with pytest.raises(UpstreamError, match=re.escape(install_hint("evm"))):
        import_all(store, upstreams_at(url))
