"""Tests of the rules of a light client, with real signatures of changing validators."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from flask_noderpc import MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.companion.light import (
    CLOCK_DRIFT_NS,
    NotTrusted,
    SignedBlock,
    check_age,
    check_follows,
    check_signed,
)
from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.trust import TrustOptions, prove
from flask_noderpc.domain.block import ABSENT, SignedHeader
from flask_noderpc.errors import ConfigurationError, UpstreamMismatch
from flask_noderpc.protocol.comet.keys import PrivateKey
from flask_noderpc.testing.chains import GENESIS_TIME, ChainMaker, _validator_tx

NOW = GENESIS_TIME * 2
PERIOD = GENESIS_TIME * 3
# The keys replace each other one by one, so that the last set has none of the first.
KEYS = [PrivateKey(bytes([0x50 + number]) * 32) for number in range(6)]


@pytest.fixture(scope="module")
def node() -> ChainBackend:
    """A chain that replaces all of its validators, one each ten blocks."""
    maker = ChainMaker((10, 10, 10))
    first = maker.keys[:]
    blocks = [maker.block()]
    for number, key in enumerate(KEYS):
        maker.add_key(key)
        txs = [_validator_tx(key, 10)]
        if number < len(first):
            txs.append(_validator_tx(first[number], 0))
        else:
            txs.append(_validator_tx(KEYS[number - len(first)], 0))
        blocks += [maker.block(*txs), *(maker.block() for _ in range(9))]
    return ChainBackend(MemoryChain(maker.genesis, blocks, state=maker.state))


def at(node: ChainBackend, height: int) -> SignedBlock:
    """Return the signed header of a height."""
    header = node.reads.block_meta(height).header
    return SignedBlock(
        SignedHeader(header, node.reads.commit(height)), node.reads.validators(height)
    )


class Read:
    """A reader of the chain in memory that records the requested heights."""

    name = "node"

    def __init__(self, node: ChainBackend) -> None:
        self.node, self.asked = node, list[int]()

    def signed_block(self, height: int) -> SignedBlock:
        """Return the signed header of a height."""
        self.asked.append(height)
        return at(self.node, height)


def test_each_header_follows_from_the_one_before(node: ChainBackend) -> None:
    """The validators that a header announces sign the next one."""
    for height in range(1, node.reads.latest_height()):
        check_follows(at(node, height), at(node, height + 1), NOW)


def test_a_third_of_the_trusted_validators_is_enough(node: ChainBackend) -> None:
    """If fewer of them have signed, a header between the two is needed."""
    trusted = at(node, 5)
    # Two of the three validators have been replaced at height 23, and all at 33.
    check_follows(trusted, at(node, 12), NOW)
    for height in (24, 34, 60):
        with pytest.raises(NotTrusted):
            check_follows(trusted, at(node, height), NOW)


def _prove(read: Read, trusted: SignedBlock, block: SignedBlock, period: int = PERIOD) -> None:
    options = TrustOptions(period=period, clock=lambda: NOW)
    prove(cast(Reader, read), trusted, block, options)


def test_bisection_asks_for_few_headers(node: ChainBackend) -> None:
    """The bisection proves a set that has none of the trusted validators."""
    read = Read(node)
    _prove(read, at(node, 2), at(node, 60))
    assert 1 <= len(read.asked) <= 12


class Unsigned(Read):
    """A reader of a chain without signatures."""

    def signed_block(self, height: int) -> SignedBlock:
        """Return the block of a height without its signatures."""
        found = super().signed_block(height)
        commit = found.signed_header.commit
        votes = tuple(ABSENT for _ in commit.signatures)
        signed = replace(found.signed_header, commit=replace(commit, signatures=votes))
        return replace(found, signed_header=signed)


def test_headers_that_never_follow_end_the_bisection(node: ChainBackend) -> None:
    """The error names the node."""
    read = Unsigned(node)
    with pytest.raises(UpstreamMismatch, match="upstream node"):
        _prove(read, at(node, 2), read.signed_block(60))
    assert len(read.asked) < 20


def test_times(node: ChainBackend) -> None:
    """A header must be in the past, and later than the trusted one, which must not be too
    old."""
    trusted, later = at(node, 5), at(node, 6)
    time = later.signed_header.header.time
    check_follows(trusted, later, time - CLOCK_DRIFT_NS + 1)
    with pytest.raises(ValueError, match="ahead of this machine's clock"):
        check_follows(trusted, later, time - CLOCK_DRIFT_NS)
    for earlier in (trusted, at(node, 4)):
        with pytest.raises(ValueError, match="not later"):
            check_follows(trusted, earlier, NOW)
    age = 1000
    check_age(later, time + age - 1, age)
    with pytest.raises(ValueError, match="older than the trusting period"):
        check_age(later, time + age, age)
    with pytest.raises(ConfigurationError, match="--trust-period"):
        _prove(Read(node), trusted, later, period=1)


def test_what_does_not_fit_is_named(node: ChainBackend) -> None:
    """The error names the chain ID, commit, validators or signatures."""
    block = at(node, 5)
    chain_id, signed = node.reads.chain_id(), block.signed_header
    check_signed(chain_id, block)
    wrong = {
        "of chain": ("another", block),
        "for another block": (
            chain_id,
            replace(block, signed_header=replace(signed, commit=node.reads.commit(6))),
        ),
        "validators of height": (
            chain_id,
            replace(block, validators=node.reads.validators(40)),
        ),
        "wrong signature": (
            chain_id,
            replace(
                block,
                signed_header=replace(
                    signed,
                    commit=replace(
                        signed.commit,
                        signatures=tuple(
                            replace(sig, signature=bytes(64))
                            for sig in signed.commit.signatures
                        ),
                    ),
                ),
            ),
        ),
    }
    for said, (of, given) in wrong.items():
        with pytest.raises(ValueError, match=said):
            check_signed(of, given)
