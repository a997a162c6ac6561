"""A chain with everything that the routes can show, in a store with a mempool."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from flask_noderpc import CommittedBlock, SQLiteBackend
from flask_noderpc.backends.base.capabilities import Network
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.domain.abci import Event, EventAttribute
from flask_noderpc.domain.genesis import (
    BlockParams,
    ConsensusParamsUpdate,
    EvidenceParams,
    ValidatorParams,
)
from flask_noderpc.domain.network import (
    ChannelStatus,
    ConnectionStatus,
    NetInfo,
    NodeInfo,
    Peer,
)
from flask_noderpc.protocol.comet.keys import PrivateKey
from flask_noderpc.testing.chains import ChainMaker

# Heights at which the chain has each thing.
WITH_EVENTS = WITH_TXS = 2
WITH_UPDATE = WITH_FAILED_TX = 3
WITH_EVIDENCE = 4
AFTER_ABSENCE = 6
WITH_PARAMS = LATEST = 7

TX = b"name=satoshi"
FAILED_TX = b"val=ed25519!short!1"


PEER = "22" * 20 + "@10.0.0.2:26656"


class PeeredNetwork(Network):
    """A node with a peer, which records the addresses that it should dial."""

    dialed: tuple[object, ...] = ()

    def dial_seeds(self, addresses: Sequence[str]) -> None:
        self.dialed = tuple(addresses)

    def dial_peers(
        self, addresses: Sequence[str], *, persistent: bool, unconditional: bool, private: bool
    ) -> None:
        self.dialed = (*addresses, persistent, unconditional, private)

    def net_info(self) -> NetInfo:
        card = NodeInfo(b"\x22" * 20, "sample-chain", "peer", "0.38.25", channels=b"\x40")
        status = ConnectionStatus(5, channels=(ChannelStatus(64, 10, 1, 2, 3),))
        return NetInfo(
            listeners=("Listener(@)",), peers=(Peer(card, True, "10.0.0.2", status),)
        )


class PeeredBackend(SQLiteBackend):
    """A store whose node has a validator key, an ID, and a peer."""

    @cached_property
    def network(self) -> PeeredNetwork:
        return PeeredNetwork(self.reads.chain_id)


def backend(folder: Path) -> PeeredBackend:
    """Return the chain, in a new file of the folder."""
    maker = ChainMaker((10, 7, 3), app_state=b'{"accounts": [1]}')
    made = PeeredBackend(folder / "chain.db", application=KVStore)
    made.init_chain(maker.genesis, maker.state)
    made.append_block(*_blocks(maker))
    made.network.info = NodeInfo(b"\x11" * 20, "sample-chain", channels=b"\x40")
    made.network.key = maker.keys[0].public
    return made


def _blocks(maker: ChainMaker) -> list[CommittedBlock]:
    # The newcomer does not sign, so its votes are absent.
    key = b64encode(PrivateKey(b"\x77" * 32).public.value)
    blocks = [
        maker.block(),
        _with_events(maker.block(TX, b"a=1")),
        maker.block(b"val=ed25519!" + key + b"!1", FAILED_TX),
    ]
    second = blocks[1].block.header
    blocks.append(maker.block(evidence=[maker.double_vote(0, second.height, second.time)]))
    blocks += [maker.block(b"b=2"), maker.block(), _with_params(maker.block(b"c=3"))]
    return blocks


def _with_events(item: CommittedBlock) -> CommittedBlock:
    event = Event("begin", (EventAttribute(b"foo", b"100"),))
    results = replace(item.results, begin_block_events=(event,), end_block_events=(event,))
    return replace(item, results=results)


def _with_params(item: CommittedBlock) -> CommittedBlock:
    update = ConsensusParamsUpdate(BlockParams(), EvidenceParams(), ValidatorParams())
    return replace(item, results=replace(item.results, consensus_param_updates=update))
