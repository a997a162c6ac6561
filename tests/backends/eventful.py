"""A random chain with everything that a store has, and all requests of clients."""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from flask.testing import FlaskClient

from flask_noderpc import ChainBackend, CommittedBlock
from flask_noderpc.backends.base.application import BlockExecution, BlockRequest
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.domain.genesis import BlockParams, ConsensusParamsUpdate
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.protocol.comet.keys import PrivateKey
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for
from tests.helpers.until import PATIENCE


def client_of(store: ChainBackend, **settings: Any) -> FlaskClient:
    """Return a client of the store, whose searches may take long on a busy machine."""
    return app_for(store, search_timeout=PATIENCE, **settings).test_client()


NEWCOMER = PrivateKey(b"\x77" * 32)


class Changing(KVStore):
    """Changes the chain's parameters in some blocks."""

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        made = super().finalize_block(block)
        if block.height % 7:
            return made
        update = ConsensusParamsUpdate(block=BlockParams(2_000_000 + block.height, -1))
        return replace(made, consensus_param_updates=update)


def power_of_newcomer(power: int) -> bytes:
    return b"val=ed25519!" + b64encode(NEWCOMER.public.value) + b"!%d" % power


class Eventful:
    """Makes random blocks with everything that a store can contain."""

    def __init__(self, randomness: random.Random) -> None:
        self._random = randomness
        self.maker = ChainMaker((10, 7, 3), application=Changing)
        self.maker.add_key(NEWCOMER)
        self.blocks: list[CommittedBlock] = []
        self.txs: list[bytes] = []
        self.base = 1

    def more(self, count: int) -> list[CommittedBlock]:
        made = [self._block() for _ in range(count)]
        self.blocks += made
        return made

    def _block(self) -> CommittedBlock:
        txs = [self._tx() for _ in range(self._random.randrange(4))]
        self.txs += txs
        evidence = []
        if self.blocks and self._random.random() < 0.2:
            # A node accepts no evidence about a height whose header it lacks.
            known = self.blocks[self.base - 1 :]
            header = self._random.choice(known).block.header
            vote = self.maker.double_vote(self._random.randrange(3), header.height, header.time)
            evidence.append(vote)
        return self.maker.block(*txs, evidence=evidence)

    def _tx(self) -> bytes:
        fresh = b"k%d=v%d" % (self._random.randrange(9), self._random.randrange(99))
        # Choose among a repeated transaction, a failing one, and changes of the validator set
        # that succeed or fail.
        again = self._random.choice(self.txs or [fresh])
        change = power_of_newcomer(self._random.choice((0, 0, 5, 6)))
        expected = self._random.choice((fresh, fresh, again, b"val=no validator", change))
        # A search shows no failure of a transaction that succeeded before, but a pruned store
        # does not know about the earlier success.
        forgotten = {tx for item in self.blocks[: self.base - 1] for tx in item.block.txs}
        return fresh if expected.startswith(b"val=ed") and expected in forgotten else expected


def answers(client: FlaskClient, base: int, chain: Eventful) -> Iterator[tuple[str, Any]]:
    """Yield paths for the heights from ``base`` on, with their responses."""
    latest = chain.maker.head.height
    paths = ["genesis", f"blockchain?minHeight={base}", "dump_consensus_state"]
    for height in range(base, latest + 1):
        routes = ("block", "header", "commit", "block_results", "validators")
        paths += [f"{route}?height={height}" for route in (*routes, "consensus_params")]
        digest = hashes.block_id(chain.blocks[height - 1].block)[0].hash.hex()
        paths += [f"{route}?hash=0x{digest}" for route in ("block_by_hash", "header_by_hash")]
    paths += [f"{route}?height={latest + 1}" for route in ("validators", "consensus_params")]
    for path in paths:
        found = client.get(f"/{path}")
        yield path, (found.status_code, found.data)


QUERIES = {
    "tx": (
        "app.creator='Cosmoshi'",
        "app.key='k1'",
        "app.key CONTAINS 'k'",
        "app.index_key EXISTS",
        "tx.height>0",
    ),
    "block": ("block.height>0",),
}


def searches(client: FlaskClient, base: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield the paths of searches from the height ``base`` on, with their responses."""
    for kind, queries in QUERIES.items():
        bound = f" AND {kind}.height>={base}" if base else ""
        for query in queries:
            for also in ("", '&order_by="desc"', "&prove=true"):
                path = f"/{kind}_search?per_page=100{also}&query="
                found = client.get(f'{path}"{query}{bound}"')
                assert "total_count" in found.text, found.text
                yield path + query, found.data
