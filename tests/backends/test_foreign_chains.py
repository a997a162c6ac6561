"""Tests of chains of other versions: key types, rules for block times, and block versions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from flask_noderpc import CommittedBlock, SQLiteBackend
from flask_noderpc.backends.base.application import InitChain
from flask_noderpc.backends.base.new_blocks import OlderBlock
from flask_noderpc.chain import proposal
from flask_noderpc.domain.abci import BlockResults, ExecTxResult
from flask_noderpc.domain.block import Block, BlockID, BlockIDFlag, Commit, CommitSig
from flask_noderpc.domain.genesis import ConsensusParams, Genesis, GenesisValidator
from flask_noderpc.domain.time import MILLISECOND, SECOND
from flask_noderpc.domain.validator import (
    BLS12_381,
    ED25519,
    ML_DSA_65,
    SECP256K1,
    SECP256K1ETH,
    PublicKey,
    Validator,
    ValidatorSet,
)
from flask_noderpc.errors import InvalidBlock
from flask_noderpc.protocol.comet import hashes, messages
from flask_noderpc.protocol.comet.chain_state import ChainState
from flask_noderpc.protocol.comet.key_types import KEY_TYPES, UnsupportedKey, address
from flask_noderpc.protocol.comet.keys import PrivateKey
from flask_noderpc.testing.chains import GENESIS_TIME
from flask_noderpc.testing.node import app_for
from tests.helpers.stores import make_store

from .conftest import OpenStore

Sign = Callable[[bytes], bytes]
SEED = b"\x05" * 32


def _ed25519() -> tuple[bytes, Sign]:
    key = PrivateKey(SEED)
    return key.public.value, key.sign


def _secp256k1() -> tuple[bytes, Sign]:
    private = ec.derive_private_key(int.from_bytes(SEED), ec.SECP256K1())
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

    def sign(message: bytes) -> bytes:
        r, s = decode_dss_signature(private.sign(message, ec.ECDSA(SHA256())))
        return r.to_bytes(32) + min(s, order - s).to_bytes(32)

    public = private.public_key()
    return public.public_bytes(Encoding.X962, PublicFormat.CompressedPoint), sign


def _secp256k1eth() -> tuple[bytes, Sign]:
    secp256k1 = pytest.importorskip("btclib_secp256k1")
    from flask_noderpc.protocol.secp256k1eth import keccak

    def sign(message: bytes) -> bytes:
        signature, parity = secp256k1.recovery.sign(keccak(message), SEED)
        return bytes((*signature, parity))

    return secp256k1.keys.pubkey_from_prvkey(SEED), sign


def _ml_dsa_65() -> tuple[bytes, Sign]:
    mldsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.mldsa")
    private = mldsa.MLDSA65PrivateKey.from_seed_bytes(SEED)
    return private.public_key().public_bytes_raw(), private.sign


def _bls12_381() -> tuple[bytes, Sign]:
    bls = pytest.importorskip("py_ecc.bls")
    curve = pytest.importorskip("py_ecc.optimized_bls12_381")
    x, y = curve.normalize(curve.multiply(curve.G1, 5))
    value = int(x).to_bytes(48) + int(y).to_bytes(48)
    return value, lambda message: bls.G2Basic.Sign(5, message)


MAKERS = {
    ED25519: _ed25519,
    SECP256K1: _secp256k1,
    BLS12_381: _bls12_381,
    ML_DSA_65: _ml_dsa_65,
    SECP256K1ETH: _secp256k1eth,
}


class ForeignChain:
    """Makes blocks of validators with keys of any type; their votes are a second apart."""

    def __init__(
        self, *kinds: str, params: ConsensusParams | None = None, nil: Sequence[int] = ()
    ) -> None:
        made = {kind: MAKERS[kind]() for kind in kinds}
        keys = [PublicKey(kind, value) for kind, (value, _) in made.items()]
        self.signs = {address(key): made[key.type][1] for key in keys}
        self.genesis = Genesis(
            "foreign-1",
            GENESIS_TIME,
            consensus_params=params or ConsensusParams(),
            validators=tuple(GenesisValidator(address(key), key, 10) for key in keys),
        )
        self.head = ChainState.at_genesis(self.genesis)
        self.blocks: list[CommittedBlock] = []
        self.nil = nil

    def block(self, change: Callable[[Block], Block] = lambda block: block) -> CommittedBlock:
        height = self.head.height + 1
        tx = b"tx %d" % height
        head = self.head
        block = change(proposal.next_block(head, (tx,), head.validators.proposer, 1))
        block_id, _ = hashes.block_id(block)
        results = BlockResults(height, (ExecTxResult(),), app_hash=sha256(tx).digest())
        commit = self._commit(block, block_id)
        self.head = head.next_state(block_id, block.header.time, commit, results)
        made = CommittedBlock(block, commit, results)
        self.blocks.append(made)
        return made

    def _commit(self, block: Block, block_id: BlockID) -> Commit:
        unsigned = Commit(
            block.header.height,
            0,
            block_id,
            tuple(
                CommitSig(
                    BlockIDFlag.NIL if index in self.nil else BlockIDFlag.COMMIT,
                    member.address,
                    block.header.time + (index + 1) * SECOND,
                )
                for index, member in enumerate(self.head.validators.validators)
            ),
        )
        signed = messages.canonical_precommits(unsigned, self.genesis.chain_id)
        return replace(
            unsigned,
            signatures=tuple(
                replace(vote, signature=self.signs[vote.validator_address](message))
                for vote, message in zip(unsigned.signatures, signed, strict=True)
            ),
        )


@pytest.fixture
def store(open_store: OpenStore, tmp_path: Path) -> SQLiteBackend:
    return open_store(tmp_path / "chain.db")


def asked(store: SQLiteBackend, path: str) -> Any:
    client = app_for(store, dialect="comet-0.38").test_client()
    return client.get(path).get_json()["result"]


def test_a_chain_of_all_key_types_is_stored_shown_and_verified(
    store: SQLiteBackend, tmp_path: Path
) -> None:
    chain = ForeignChain(*MAKERS)
    for _ in range(3):
        chain.block()

    store.init_chain(chain.genesis, InitChain())
    store.append_block(*chain.blocks)

    assert store.verify() == 3
    assert [store.reads.commit(n) for n in (1, 2, 3)] == [item.commit for item in chain.blocks]
    shown = asked(store, "/validators?height=2")["validators"]
    assert {v["pub_key"]["type"] for v in shown} == {
        "tendermint/PubKeyEd25519",
        "tendermint/PubKeySecp256k1",
        "cometbft/PubKeyBls12_381",
        "cometbft/PubKeyMlDsa65",
        "tendermint/PubKeySecp256k1eth",
    }


def test_a_wrong_signature_of_a_new_key_type_is_found(store: SQLiteBackend) -> None:
    chain = ForeignChain(ML_DSA_65)
    item = chain.block()
    store.init_chain(chain.genesis, InitChain())
    (vote,) = item.commit.signatures
    wrong = replace(vote, signature=vote.signature[:-1] + b"\0")
    store.append_block(replace(item, commit=replace(item.commit, signatures=(wrong,))))

    with pytest.raises(InvalidBlock, match="commit 1: signature 0 does not verify"):
        store.verify()


def test_a_store_begins_at_a_block_that_such_keys_signed(
    store: SQLiteBackend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chain = ForeignChain(ML_DSA_65, ED25519)
    sets, params = [], []
    for _ in range(4):
        sets.append(chain.head.validators)
        params.append(chain.head.params)
        chain.block()

    def missing(*_: bytes) -> bool:
        raise UnsupportedKey("ml_dsa_65 keys need a newer cryptography")

    monkeypatch.setitem(KEY_TYPES, ML_DSA_65, replace(KEY_TYPES[ML_DSA_65], verify=missing))
    trusted = chain.blocks[1]
    header, three = trusted.block.header, (sets[1], sets[2], sets[3])
    store.init_at("foreign-1", 1, header, trusted.commit, three, params[2])
    store.append_block(*chain.blocks[2:])
    for at in (1, 0):
        item = chain.blocks[at]
        store.backfill(OlderBlock(item.block, item.results, sets[at], params=params[at]))

    with caplog.at_level(logging.WARNING):
        assert store.verify() == 4
    assert caplog.messages == [
        "some signatures could not be verified: ml_dsa_65 keys need a newer cryptography"
    ]


def test_the_time_may_be_the_median_of_the_votes_for_the_block_alone(
    store: SQLiteBackend,
) -> None:
    # Since CometBFT 0.40 a vote for nil does not count.
    chain = ForeignChain(ED25519, SECP256K1, ML_DSA_65, SECP256K1ETH, nil=(0,))
    store.init_chain(chain.genesis, InitChain())
    store.append_block(chain.block())

    def by_0_40(block: Block) -> Block:
        time = sorted(vote.timestamp for vote in block.last_commit.signatures[1:])[1]
        assert time != block.header.time
        return replace(block, header=replace(block.header, time=time))

    before = chain.head
    other = chain.block(
        lambda block: replace(
            block, header=replace(block.header, time=block.header.time + MILLISECOND)
        )
    )
    with pytest.raises(InvalidBlock, match="block 2: time: expected"):
        store.append_block(other)
    chain.head = before
    store.append_block(chain.block(by_0_40))

    assert store.verify() == 2


@pytest.mark.parametrize("forward", [1, 5 * SECOND])
def test_the_proposers_clock_gives_the_time_once_that_is_enabled(
    store: SQLiteBackend, forward: int
) -> None:
    # CometBFT 1.0: proposer-based timestamps, from height 3 on.
    chain = ForeignChain(ED25519, params=ConsensusParams(pbts_enable_height=3))
    store.init_chain(chain.genesis, InitChain())
    store.append_block(chain.block(), chain.block())

    def by_clock(block: Block) -> Block:
        time = chain.head.time + forward
        return replace(block, header=replace(block.header, time=time))

    store.append_block(chain.block(by_clock))

    assert store.verify() == 3
    assert store.reads.block(3)[1].header.time == store.reads.block(2)[1].header.time + forward


@pytest.mark.parametrize("height", [2, 3])
def test_time_never_stands_still(store: SQLiteBackend, height: int) -> None:
    chain = ForeignChain(ED25519, params=ConsensusParams(pbts_enable_height=3))
    store.init_chain(chain.genesis, InitChain())
    store.append_block(*[chain.block() for _ in range(height - 1)])
    same = chain.block(
        lambda block: replace(block, header=replace(block.header, time=chain.head.time))
    )

    with pytest.raises(InvalidBlock, match=f"block {height}: time: expected"):
        store.append_block(same)


def test_another_block_version_is_taken_where_it_is_named(store: SQLiteBackend) -> None:
    # Tendermint 0.33 and before have 10.
    chain = ForeignChain(ED25519)
    store.init_chain(chain.genesis, InitChain())
    made = chain.block(
        lambda block: replace(
            block,
            header=replace(block.header, version=replace(block.header.version, block=10)),
        )
    )

    with pytest.raises(InvalidBlock, match=r"version.block: expected 11, got 10"):
        store.append_block(made)
    store.append_block(replace(made, unchecked=frozenset({"version.block"})))

    assert store.verify() == 1
    assert asked(store, "/block?height=1")["block"]["header"]["version"]["block"] == "10"
    assert store.all_unchecked() == {"version.block": (1, 1, 1)}


def test_a_store_with_new_keys_opens_again(open_store: OpenStore, tmp_path: Path) -> None:
    chain = ForeignChain(SECP256K1)
    with closing(make_store(tmp_path / "again.db")) as first:
        first.init_chain(chain.genesis, InitChain())
        first.append_block(chain.block())
    again = open_store(tmp_path / "again.db")

    again.append_block(chain.block())

    assert again.verify() == 2


def test_keys_of_an_unknown_type_are_stored_and_marked_as_not_verified(
    store: SQLiteBackend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = Validator(b"\7" * 20, PublicKey("falcon", bytes(897)), 5)
    members = ValidatorSet((unknown,), unknown.address)
    chain = ForeignChain(ED25519)
    chain.signs[unknown.address] = lambda message: bytes(666)
    with monkeypatch.context() as patched:
        # The chain's own nodes know this key type.
        patched.setitem(KEY_TYPES, "falcon", replace(KEY_TYPES[ED25519], member=9))
        chain.block()
        chain.head = replace(chain.head, validators=members, next_validators=members)
        trusted = chain.block()
        chain.block()
    header, params = trusted.block.header, chain.head.params
    store.init_at("foreign-1", 1, header, trusted.commit, (members,) * 3, params)
    store.append_block(chain.blocks[2])
    store.backfill(OlderBlock(trusted.block, trusted.results, members))

    with caplog.at_level(logging.WARNING):
        assert store.verify() == 2
    assert caplog.messages == [
        "some signatures could not be verified: signatures of falcon keys can't be verified:"
        " unknown key type"
    ]
    assert store.all_unchecked() == {
        "validators_hash": (2, 2, 3),
        "next_validators_hash": (1, 3, 3),
    }
