"""A chain with changing validators, for light clients to verify."""

from __future__ import annotations

from pathlib import Path

from flask_noderpc import SQLiteBackend
from flask_noderpc.chain.applications.merkle_kvstore import MerkleKVStore
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.protocol.comet.keys import PrivateKey
from flask_noderpc.testing.chains import ChainMaker

from ..chain.fixtures import validator_tx
from .light import Question, Trust

TRUSTED = 1
HEIGHT = 24
"""Height of the chain, whose four validators have been replaced one by one, seven times."""

_SEATS = 4

PATH = '"/store/main/key"'
COMMIT = Question("commit", {"height": HEIGHT})
BLOCK = Question("block", {"height": HEIGHT})
TX = Question("tx", {"hash": "0x" + tx_hash(b"height=23").hex(), "prove": "true"})
RESULTS = Question("block_results", {"height": HEIGHT - 1})
PARAMS = Question("consensus_params", {"height": HEIGHT})
QUERY = Question("abci_query", {"path": PATH, "data": "0x" + b"height".hex()})


def write_chain(path: Path, forked_at: int = HEIGHT + 1) -> Trust:
    """Write blocks of pairs, which differ after a fork; in each third block a new validator
    replaces the oldest."""
    maker = ChainMaker([10] * _SEATS, chain_id="changing", application=MerkleKVStore)
    backend = SQLiteBackend(path)
    backend.init_chain(maker.genesis, maker.state)
    for height in range(1, HEIGHT + 1):
        change = _handover(maker) if height % 3 == 0 else ()
        branch = b"b" if height >= forked_at else b"a"
        backend.append_block(maker.block(*change, b"height=%d" % height, b"branch=" + branch))
    first, _ = backend.reads.block(TRUSTED)
    backend.close()
    return Trust(maker.genesis.chain_id, TRUSTED, first.hash)


def _handover(maker: ChainMaker) -> tuple[bytes, bytes]:
    newest = PrivateKey(bytes([100 + len(maker.keys)]) * 32)
    oldest = maker.keys[len(maker.keys) - _SEATS]
    maker.add_key(newest)
    return validator_tx(newest, 10), validator_tx(oldest, 0)
