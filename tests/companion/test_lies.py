"""Tests of nodes that serve wrong data: they are not asked again, and the chain is imported
from an honest one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import ChainBackend, SQLiteBackend
from flask_noderpc.backends.base.capabilities import Network
from flask_noderpc.backends.sql.store import ChainStore
from flask_noderpc.companion.beginning import FetchOptions
from flask_noderpc.companion.growth import Growth
from flask_noderpc.companion.head_age import HeadAge
from flask_noderpc.companion.importer import Importer
from flask_noderpc.companion.pool import NoUpstream, Upstreams
from flask_noderpc.companion.trust import TrustOptions
from flask_noderpc.domain.abci import BlockResults, ExecTxResult
from flask_noderpc.domain.block import ABSENT, Block, BlockID, BlockMeta, Commit, CommitSig
from flask_noderpc.domain.genesis import BlockParams, ConsensusParams, ConsensusParamsUpdate
from flask_noderpc.domain.network import NodeInfo
from flask_noderpc.domain.validator import PublicKey, Validator, ValidatorSet, ValidatorUpdate
from flask_noderpc.errors import ConfigurationError, LeaseLost, UpstreamUnavailable
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.testing import SampleChain, make_chain
from tests.helpers.growing import View
from tests.helpers.stores import make_store

from .conftest import HEIGHTS, TRUST, Serve, import_all, node_of, upstreams_at
from .forked import forked_node

Lie = Callable[["Liar"], object]


class Liar(ChainBackend):
    """A node that serves wrong data about the chain of another backend in some places."""

    def __init__(
        self, inner: ChainBackend, kind: Callable[[ChainBackend], LyingReads] | None = None
    ) -> None:
        reads = (kind or LyingReads)(inner)
        reads.liar = self
        super().__init__(reads)
        self.inner = inner
        self.of_block: Callable[[Block], Block] = lambda block: block
        self.of_results: Callable[[BlockResults], BlockResults] = lambda results: results
        self.of_commit: Callable[[Commit], Commit] = lambda commit: commit
        self.of_set: Callable[[ValidatorSet], ValidatorSet] = lambda found: found
        self.of_params: Callable[[ConsensusParams], ConsensusParams] = lambda params: params
        self.is_consistent = False
        self.chain = inner.reads.chain_id()

    @property
    def network(self) -> Network:
        found = Network(self.reads.chain_id)
        found.info = NodeInfo(id=bytes(20), network=self.chain)
        return found


class LyingReads(View):
    """Reads of a chain with the wrong data of a node."""

    liar: Liar

    def block(self, height: int) -> tuple[BlockID, Block]:
        block_id, block = super().block(height)
        told = self.liar.of_block(block)
        if self.liar.is_consistent:
            # The block's own hashes are consistent, but do not fit the other blocks.
            block_id = hashes.block_hashes(told).block_id
        return block_id, told

    def block_meta(self, height: int) -> BlockMeta:
        block_id, block = self.block(height)
        return replace(super().block_meta(height), block_id=block_id, header=block.header)

    def results(self, height: int) -> BlockResults:
        return self.liar.of_results(super().results(height))

    def commit(self, height: int) -> Commit:
        return self.liar.of_commit(super().commit(height))

    def validators(self, height: int) -> ValidatorSet:
        return self.liar.of_set(super().validators(height))

    def consensus_params(self, height: int) -> ConsensusParams:
        return self.liar.of_params(super().consensus_params(height))


def _header(**changes: object) -> Lie:
    def tell(node: Liar) -> None:
        node.of_block = lambda block: replace(
            block,
            header=replace(block.header, **changes),  # type: ignore[arg-type]
        )

    return tell


def _forged(**changes: object) -> Lie:
    def tell(node: Liar) -> None:
        _header(**changes)(node)
        node.is_consistent = True

    return tell


def _txs(change: Callable[[tuple[bytes, ...]], tuple[bytes, ...]]) -> Lie:
    def tell(node: Liar) -> None:
        node.of_block = lambda block: replace(block, txs=change(block.txs))

    return tell


def _last_commit(change: Callable[[Commit], Commit]) -> Lie:
    def tell(node: Liar) -> None:
        node.of_block = lambda block: replace(block, last_commit=change(block.last_commit))

    return tell


def _commit(change: Callable[[Commit], Commit]) -> Lie:
    def tell(node: Liar) -> None:
        node.of_commit = change

    return tell


def _results(change: Callable[[ExecTxResult], ExecTxResult]) -> Lie:
    def tell(node: Liar) -> None:
        node.of_results = lambda results: replace(
            results, tx_results=tuple(map(change, results.tx_results))
        )

    return tell


def _all_results(**changes: object) -> Lie:
    def tell(node: Liar) -> None:
        node.of_results = lambda results: replace(results, **changes)  # type: ignore[arg-type]

    return tell


def _members(change: Callable[[tuple[Validator, ...]], tuple[Validator, ...]]) -> Lie:
    def tell(node: Liar) -> None:
        node.of_set = lambda found: ValidatorSet(change(found.validators))

    return tell


def _of_unknown_keys(found: tuple[Validator, ...]) -> tuple[Validator, ...]:
    """Return validators with keys of a type whose signatures can't be verified."""
    return tuple(replace(each, pub_key=PublicKey("sr25519", bytes(32))) for each in found)


def _priorities(found: tuple[Validator, ...]) -> tuple[Validator, ...]:
    """Return priorities from which the next height's do not follow."""
    return tuple(replace(each, proposer_priority=0) for each in found)


def _parameters(node: Liar) -> None:
    node.of_params = lambda params: replace(params, block=BlockParams(77, -1))


def _chain_id(node: Liar) -> None:
    node.chain = "another-chain"


def _other_height(node: Liar) -> None:
    block = node.inner.reads.block
    node.reads.block = lambda height: block(max(1, height - 1))  # type: ignore[method-assign]


def _signed(change: Callable[[CommitSig], CommitSig]) -> Callable[[Commit], Commit]:
    return lambda commit: replace(commit, signatures=tuple(map(change, commit.signatures)))


def _no_votes(commit: Commit) -> Commit:
    return _signed(lambda sig: ABSENT)(commit)


LIES: dict[str, Lie] = {
    "a transaction is changed": _txs(lambda txs: tuple(tx + b"!" for tx in txs)),
    "a transaction is added": _txs(lambda txs: (*txs, b"more=1")),
    "the transactions are left out": _txs(lambda txs: ()),
    "the time": _header(time=1),
    "the app hash": _header(app_hash=b"x" * 8),
    "the proposer": _header(proposer_address=bytes(20)),
    "the results hash": _header(last_results_hash=bytes(32)),
    "the chain of the header": _header(chain_id="another-chain"),
    "a block that fits its own hash": _forged(app_hash=b"x" * 8),
    "a signature of the last commit": _last_commit(
        _signed(lambda sig: replace(sig, signature=bytes(64)))
    ),
    "a vote of the last commit": _last_commit(_no_votes),
    "the signatures of the commit": _commit(
        _signed(lambda sig: replace(sig, signature=bytes(64)))
    ),
    "too few signatures": _commit(_no_votes),
    "a commit for another block": _commit(
        lambda commit: replace(commit, block_id=replace(commit.block_id, hash=bytes(32)))
    ),
    "a code": _results(lambda result: replace(result, code=9)),
    "the data": _results(lambda result: replace(result, data=b"other")),
    "the gas": _results(lambda result: replace(result, gas_used=result.gas_used + 1)),
    "a result is added": _all_results(tx_results=(ExecTxResult(),) * 9),
    "the app hash of the results": _all_results(app_hash=b"other"),
    "results of another height": _all_results(height=3),
    "a validator's power": _members(
        lambda found: (replace(found[0], voting_power=99), *found[1:])
    ),
    "a validator is left out": _members(lambda found: found[1:]),
    "keys of an unknown type": _members(_of_unknown_keys),
    "the block of another height": _other_height,
}


def _liar(chain: SampleChain, lie: Lie) -> Liar:
    node = Liar(node_of(chain))
    lie(node)
    return node


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_refuses_the_node_and_not_the_chain(
    lie: str, chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The rest is read from the honest node."""
    lying, honest = serve_node(_liar(chain, LIES[lie])), serve_node(node_of(chain))
    # Half of the chain is read from a trusted block down, and half from the head up.
    upstreams = upstreams_at(lying, honest)
    import_all(store, upstreams, 1, 30)
    import_all(store, upstreams, 1, HEIGHTS)

    assert set(upstreams.refused) == {lying}
    assert store.verify() == HEIGHTS
    for item in chain.blocks:
        height = item.block.header.height
        assert store.reads.block(height)[1] == item.block
        assert store.reads.results(height) == item.results


@pytest.mark.parametrize("lie", LIES)
def test_a_liar_alone_ends_the_import(
    lie: str, chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The error names the node, and the blocks stored before are right."""
    import_all(store, upstreams_at(serve_node(node_of(chain))), 25, 30)
    lying = serve_node(_liar(chain, LIES[lie]))

    with pytest.raises(NoUpstream, match=lying):
        import_all(store, upstreams_at(lying), 1, HEIGHTS)

    assert store.verify() >= 6


@pytest.mark.parametrize(
    "lie",
    [
        _parameters,
        LIES["a validator's power"],
        LIES["too few signatures"],
        LIES["keys of an unknown type"],
    ],
)
def test_no_store_begins_with_a_lie(
    lie: Lie, chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The lies are about parameters and validators after a trusted header, and about its
    signatures."""
    lying = serve_node(_liar(chain, lie))
    with pytest.raises(NoUpstream, match=lying):
        import_all(store, upstreams_at(lying))
    assert not store.has_chain()


def test_no_store_begins_with_priorities_that_do_not_follow(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend, tmp_path: Path
) -> None:
    """No hash covers priorities, but the next height's priorities follow from them."""
    urls = serve_node(_liar(chain, _members(_priorities))), serve_node(node_of(chain))
    upstreams = upstreams_at(*urls)
    import_all(store, upstreams, 20, 30)
    assert set(upstreams.refused) <= {urls[0]}
    assert store.reads.validators(25) == node_of(chain).reads.validators(25)
    with (
        closing(make_store(tmp_path / "alone.db")) as alone,
        pytest.raises(NoUpstream, match="priorities of height 31"),
    ):
        import_all(alone, upstreams_at(urls[0]), 20, 30)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("low", range(5, 9))
def test_a_lie_about_old_validators_alone(
    low: int, is_first: bool, chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The node with the wrong validators is refused, and not a node that gave a block."""

    def old(found: ValidatorSet, height: int) -> ValidatorSet:
        first, *rest = found.validators
        changed = replace(first, voting_power=99) if height < 20 else first
        return ValidatorSet((changed, *rest))

    liar = Liar(node_of(chain))
    shown = liar.inner.reads.validators
    liar.reads.validators = lambda height: old(shown(height), height)  # type: ignore[method-assign]
    honest, lying = serve_node(node_of(chain)), serve_node(liar)
    import_all(store, upstreams_at(honest), 25, 30)
    upstreams = upstreams_at(*((lying, honest) if is_first else (honest, lying)))

    assert import_all(store, upstreams, low, 30) == (low, 30)
    assert honest not in upstreams.refused
    assert (
        store.reads.validators(low).validators
        == node_of(chain).reads.validators(low).validators
    )


def test_unknown_keys_are_taken_if_the_operator_says_so(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The blocks are stored as unchecked, because a chain may have its own types of keys."""
    upstreams = upstreams_at(serve_node(_liar(chain, _members(_of_unknown_keys))))
    with pytest.raises(NoUpstream, match="--unchecked validators_hash"):
        import_all(store, upstreams, 20, 30)

    own = frozenset({"validators_hash", "next_validators_hash"})
    upstreams = upstreams_at(serve_node(_liar(chain, _members(_of_unknown_keys))))
    import_all(store, upstreams, 20, 30, FetchOptions(TRUST, unchecked=own))
    assert store.reads.validators(25).validators[0].pub_key.type == "sr25519"
    assert set(store.all_unchecked()) >= {"validators_hash"}


HEAD_LIES: dict[str, Lie] = {
    "validator updates": _all_results(
        validator_updates=(ValidatorUpdate(PublicKey("ed25519", bytes(32)), 55),)
    ),
    "no validator updates": _all_results(validator_updates=()),
    "parameters": _all_results(
        consensus_param_updates=ConsensusParamsUpdate(block=BlockParams(77_777, -1))
    ),
    "a code": LIES["a code"],
    "events": _all_results(begin_block_events=()),
}


@pytest.mark.parametrize("lie", HEAD_LIES)
def test_lies_about_the_head_are_replaced(
    lie: str, chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """Only the next header proves the head's results, so the node that serves this header is
    believed."""
    lying = serve_node(_liar(chain, HEAD_LIES[lie]))
    honest = upstreams_at(serve_node(node_of(chain)))
    import_all(store, honest, 3, 4)
    members = node_of(chain)
    for height in range(5, 60, 2):
        # Nothing contradicts the head yet, or an older head does.
        with suppress(NoUpstream):
            import_all(store, upstreams_at(lying), 3, height)
        import_all(store, honest, 3, height + 1)

    assert honest.refused == {}
    assert store.verify() == 58
    for height in range(3, 60):
        assert (
            store.reads.validators(height).validators
            == members.reads.validators(height).validators
        )
        assert store.reads.consensus_params(height) == members.reads.consensus_params(height)


def test_a_signature_beyond_two_thirds(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The latest commit is served as it came, so all its signatures are verified."""

    def last(commit: Commit) -> Commit:
        *rest, sig = commit.signatures
        return replace(commit, signatures=(*rest, replace(sig, signature=bytes(64))))

    urls = serve_node(_liar(chain, _commit(last))), serve_node(node_of(chain))
    import_all(store, upstreams_at(urls[1]), 1, 30)
    upstreams = upstreams_at(*urls)
    for height in range(31, 35):
        import_all(store, upstreams, 1, height)
        assert store.reads.commit(height) == chain.blocks[height - 1].commit
    assert set(upstreams.refused) == {urls[0]}


def test_nodes_of_two_chains(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """A chain ID decides which chain is meant, or a store that has one."""
    other, own = serve_node(_liar(chain, _chain_id)), serve_node(node_of(chain))
    with pytest.raises(ConfigurationError, match="--chain-id"):
        import_all(store, upstreams_at(other, own))

    upstreams = upstreams_at(other, own)
    import_all(store, upstreams, 1, 30, FetchOptions(TRUST, chain_id=chain.genesis.chain_id))
    assert set(upstreams.refused) == {other}
    upstreams = upstreams_at(other, own)
    import_all(store, upstreams, 1, HEIGHTS)
    assert set(upstreams.refused) == {other}


def test_a_trusted_header_that_the_store_does_not_have(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The store holds a fork, or the hash is wrong."""
    upstreams = upstreams_at(serve_node(node_of(chain)))
    import_all(store, upstreams, 1, 30)
    options = FetchOptions(TrustOptions(20, bytes(32), TRUST.period))
    with pytest.raises(ConfigurationError, match="expected the hash of this block"):
        import_all(store, upstreams, 1, 40, options)


def test_a_trusted_header_above_the_store(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The trusted header is compared when the store reaches its height."""
    upstreams = upstreams_at(serve_node(node_of(chain)))
    import_all(store, upstreams, 1, 30)
    options = FetchOptions(TrustOptions(40, bytes(32), TRUST.period))
    with pytest.raises(NoUpstream, match="not the trusted one"):
        import_all(store, upstreams, 1, 50, options)
    assert store.reads.latest_height() < 40


def test_a_header_ahead_of_the_clock(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The companion waits for the clock as it does for a node, because this machine's clock may
    be wrong."""
    upstreams = upstreams_at(serve_node(node_of(chain)))
    import_all(store, upstreams, 1, 30)
    early = chain.blocks[29].block.header.time
    options = FetchOptions(replace(TRUST, clock=lambda: early))
    with pytest.raises(UpstreamUnavailable, match="ahead of this machine's clock"):
        import_all(store, upstreams, 1, HEIGHTS, options)
    assert upstreams.refused == {}


def _are_ahead(result: Any) -> None:
    for meta in result["block_metas"]:
        if int(meta["header"]["height"]) > 7:
            meta["header"]["time"] = "2099-01-01T00:00:00Z"


@pytest.mark.parametrize("stored", [0, 5])
def test_times_that_nothing_proves_stop_nobody(
    stored: int, chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """A node serves unsigned headers whose times are ahead of the clock."""
    url = serve_node(node_of(chain))
    if stored:
        import_all(store, upstreams_at(url), 1, stored)
    with forked_node(node_of(chain), "comet-0.38", {"blockchain": _are_ahead}) as liar:
        upstreams = upstreams_at(liar, url)
        upstreams.ahead = upstreams.usable_readers()[0].name
        trusted = TrustOptions(30, hashes.header_hash(chain.blocks[29].block.header), 10**20)
        importer = Importer(store, upstreams, FetchOptions(trusted))
        importer.plan(1, 40)
        assert store.reads.base_height() == (1 if stored else 40)
        with closing(_growth(store, upstreams)) as growth:
            growth.extend(40, lambda count: None)
    assert store.reads.latest_height() == 40


def _growth(store: ChainStore, upstreams: Upstreams) -> Growth:
    return Growth(store, upstreams, TRUST, HeadAge(store, upstreams, TRUST))


def test_an_overtaken_process_refuses_nobody(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """Another process took its lease and continued."""
    url = serve_node(node_of(chain))
    import_all(store, upstreams_at(url), 1, 5)
    own, lease = upstreams_at(url), store.acquire_lease("own", 600)
    second = make_store(store.location.path)

    def overtake(count: int) -> None:
        if second.reads.latest_height() < HEIGHTS and lease is not None:
            store.release_lease(lease)
            other = second.acquire_lease("other", 600)
            _growth(second, upstreams_at(url)).extend(HEIGHTS, lambda count: None, other)

    with pytest.raises(LeaseLost):
        _growth(store, own).extend(HEIGHTS - 5, overtake, lease)
    assert own.refused == {}
    second.close()


def test_nodes_that_show_two_chains_need_a_trusted_header(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """Without a trusted header, the companion can't know which chain is meant."""
    fork = make_chain(HEIGHTS, txs_per_block=3)
    urls = serve_node(node_of(chain)), serve_node(node_of(fork))
    with pytest.raises(ConfigurationError, match="--trust"):
        import_all(store, upstreams_at(*urls))

    trusted = hashes.header_hash(chain.blocks[49].block.header)
    options = FetchOptions(TrustOptions(50, trusted, TRUST.period))
    import_all(store, upstreams_at(*urls), options=options)
    assert store.reads.block(60)[1] == chain.blocks[59].block
