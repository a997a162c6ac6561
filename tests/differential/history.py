"""Events on a net of real validators: changes of the set, offences, failures."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, cast

from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.upstream import Upstream
from flask_noderpc.domain.block import BlockMeta, Commit, Evidence
from flask_noderpc.domain.validator import ValidatorSet
from flask_noderpc.protocol.comet.keys import PrivateKey

from ..chain.misbehavior import attack, double_vote
from ..helpers.until import until
from .net import Net
from .scenario import TXS
from .sides import Side, Version

SILENT = 33
"""Number of validators that never vote; with the others they are more than a page of 30."""


class RemoteChain:
    """The reads of a chain that :mod:`tests.chain.misbehavior` needs, sent to a node."""

    def __init__(self, side: Side, version: Version) -> None:
        self.reader = Reader(Upstream(side.url, dialect=version.dialect))

    @property
    def reads(self) -> RemoteChain:
        """Return this object, which also has the reads."""
        return self

    def chain_id(self) -> str:
        """Return the chain ID of the node's status."""
        return self.reader.status().node_info.network

    def block_meta(self, height: int) -> BlockMeta:
        """Return the metadata of a block."""
        return self.reader.metas(height, height)[0]

    def commit(self, height: int) -> Commit:
        """Return the commit of a height."""
        return self.reader.commit(height)[1]

    def validators(self, height: int) -> ValidatorSet:
        """Return the set of a height, with the proposer of the block."""
        proposer = self.block_meta(height).header.proposer_address
        return replace(self.reader.validators(height), proposer=proposer)


class History:
    """A net's history in two parts, between which a companion begins."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self._sent = 0

    @cached_property
    def _chain(self) -> ChainBackend:
        return cast(ChainBackend, RemoteChain(self.net.side, self.net.version))

    def small(self, prefix: bytes = b"") -> None:
        """Send data and changes of the set; in an old version also a failure and an offence.

        Another ``prefix`` makes other transactions. The application of 0.38 doesn't survive an
        offence of a validator that an older version has stored.
        """
        for tx in TXS:
            self.net.send(prefix + tx)
        self.net.send(
            self._power_of(_silent(0), 7 + len(prefix)),
            self._power_of(_silent(1), 1 + len(prefix)),
        )
        if not self.net.version.is_modern:
            self.net.send(b"val:x!1")
            self.offend(self._double_vote(0))
        few = (b"%sfew=%d" % (prefix, number) for number in range(3))
        self.net.send(self._power_of(_silent(0), 0), *few)

    def first(self) -> None:
        """Send data, many new validators at once, and evidence of a duplicate vote."""
        for tx in TXS:
            self.net.send(tx)
        self.net.send(*(self._power_of(_silent(number), 1) for number in range(SILENT)))
        self.net.send(b"after=many")
        self.offend(self._double_vote(1))
        self.net.send(b"after=offence")

    def second(self, asked: Side) -> None:
        """Send the same through a companion, then an attack on light clients, and let a
        validator go and return."""
        self.net.send(*(b"batch=%d" % number for number in range(7)))
        self.net.send(self._power_of(self.net.key(3), 0))
        self.net.send(*(self._power_of(_silent(number), 0) for number in range(0, SILENT, 2)))
        if not self.net.version.is_modern:
            # This is not a valid key, so the transaction fails in its block.
            self.net.send(b"val:x!1")
        self.net.send(self._power_of(self.net.key(3), 700), b"with=others")
        self.offend(self._double_vote(2), asked)
        self.offend(self._attack(), asked)
        self.net.send(b"the=end")

    def _power_of(self, key: PrivateKey, power: int) -> bytes:
        return self.net.version.validator_tx(key.public.value, power)

    def _double_vote(self, number: int) -> Evidence:
        height = self.net.side.height() - 1
        return double_vote(self._chain, self.net.key(number), height)

    def _attack(self) -> Evidence:
        """Return a block of height 3 that all validators signed."""
        keys = [self.net.key(number) for number in range(len(self.net.nodes))]
        return attack(self._chain, keys, 3, 2, app_hash=b"\x66" * 8)

    def offend(self, piece: Evidence, asked: Side | None = None) -> None:
        """Send evidence, and transactions until it is in a block."""
        side = asked or self.net.side
        shown = cast(RemoteChain, self._chain).reader.node.dialect.evidence(piece)
        sent = side.call("broadcast_evidence", evidence=dict(shown))
        blocks: list[Any] = []

        def is_committed() -> bool:
            # The proposer of the next block may not have received it yet.
            self._sent += 1
            height = self.net.send(b"evidence=%d" % self._sent)
            found = self.net.side.call("block", height=str(height - 1))["block"]
            before = self.net.side.call("block", height=str(height))["block"]
            blocks[:] = found["evidence"]["evidence"] + before["evidence"]["evidence"]
            return bool(blocks)

        until(is_committed, f"evidence {sent['hash']} in a block")


def _silent(number: int) -> PrivateKey:
    return PrivateKey(bytes([number + 1]) * 32)
