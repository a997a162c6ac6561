"""Tests that chains are imported from nodes, and served as by them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from flask_noderpc import DIALECTS, ChainBackend, SQLiteBackend
from flask_noderpc.cli import main
from flask_noderpc.companion import history, lease
from flask_noderpc.companion.agreement import agree
from flask_noderpc.companion.beginning import FetchOptions
from flask_noderpc.companion.importer import Importer
from flask_noderpc.companion.lease import held_lease
from flask_noderpc.companion.trust import TrustOptions
from flask_noderpc.domain.abci import BlockResults, Event
from flask_noderpc.domain.block import Block, BlockID
from flask_noderpc.domain.time import SECOND
from flask_noderpc.errors import (
    ConfigurationError,
    HeightNotAvailable,
    InvalidBlock,
    ResultNotFound,
    StoreError,
    UpstreamError,
    UpstreamUnavailable,
)
from flask_noderpc.protocol.comet.hashes import header_hash, tx_hash
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.chains import ChainMaker, make_blocks
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.growing import View
from tests.helpers.stores import make_store

from .conftest import HEIGHTS, RECENT, TRUST, Serve, import_all, node_of, upstreams_at
from .test_lies import Liar

NODES = sorted(set(DIALECTS) - {"document"})


def get(url: str) -> bytes:
    """Return the body of a response, which may be an error."""
    try:
        with urlopen(url, timeout=60) as response:
            body: bytes = response.read()
    except HTTPError as error:
        return error.read()
    return body


def paths(backend: ChainBackend) -> Iterator[str]:
    """Yield the calls of all heights that only depend on stored blocks."""
    for height in range(1, backend.reads.latest_height()):
        for route in ("block", "block_results", "consensus_params", "commit", "header"):
            yield f"/{route}?height={height}"
        for page in (1, 2):
            yield f"/validators?height={height}&page={page}&per_page=2"
        block_id, block = backend.reads.block(height)
        yield f"/block_by_hash?hash=0x{block_id.hash.hex()}"
        yield f"/header_by_hash?hash=0x{block_id.hash.hex()}"
        for tx in block.txs:
            yield f"/tx?hash=0x{tx_hash(tx).hex()}&prove=true"
    yield "/genesis"
    yield "/genesis_chunked?chunk=0"
    yield "/blockchain?minHeight=3&maxHeight=17"
    for query in ("tx.height>3 AND tx.height<9", "app.key='k5.1'", "val.height EXISTS"):
        yield f'/tx_search?query="{quote(query)}"&prove=true'


@pytest.mark.parametrize("dialect", NODES)
def test_an_imported_chain_is_served_byte_for_byte(
    dialect: str, chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The responses are the same in every dialect."""
    node = node_of(chain)
    url = serve_node(node, dialect)

    assert import_all(store, upstreams_at(url)) == (1, HEIGHTS - 1)

    # Both nodes have the same latest height, which some responses contain.
    same = serve_node(node_of(chain, HEIGHTS - 1), dialect)
    with serve(app_for(store, dialect=dialect)) as own:
        for path in paths(store):
            assert get(own + path) == get(same + path), path
    assert store.verify() == HEIGHTS - 1


def test_blocks_are_added_above_and_below(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """Stored blocks stay, and the returned heights are the stored range."""
    upstreams = upstreams_at(serve_node(node_of(chain)))

    assert import_all(store, upstreams, 30, 40) == (30, 40)
    assert import_all(store, upstreams, 30, 40) == (30, 40)
    assert import_all(store, upstreams, 30, HEIGHTS) == (30, HEIGHTS)
    assert import_all(store, upstreams, 7, 40) == (7, HEIGHTS)
    assert import_all(store, upstreams) == (1, HEIGHTS)

    assert store.verify() == HEIGHTS
    assert store.reads.genesis() == chain.genesis
    assert store.reads.results(HEIGHTS) == chain.blocks[-1].results


def test_what_is_missing_is_counted(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The terminal's progress bar needs the count."""
    upstreams = upstreams_at(serve_node(node_of(chain)))
    importer = Importer(store, upstreams, FetchOptions(TRUST))
    done: list[int] = []

    missing = importer.plan(11, 50)
    importer.run(done.append)

    # The trusted block is stored first.
    assert (missing, sum(done)) == (39, 39)
    assert importer.plan(11, 50) == 0


class Interrupted(Exception):
    pass


def test_an_interrupted_import_goes_on(
    chain: SampleChain,
    serve_node: Serve,
    store: SQLiteBackend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The import goes on where it was interrupted."""
    monkeypatch.setattr(history, "_BULK", 1)

    def interrupt(count: int) -> None:
        raise Interrupted

    upstreams = upstreams_at(serve_node(node_of(chain)))
    for _ in range(3):
        importer = Importer(store, upstreams, FetchOptions(TRUST))
        importer.plan(1, 65)
        with pytest.raises(Interrupted):
            importer.run(interrupt)

    assert store.reads.base_height() == 65 - 3 * 20
    assert import_all(store, upstreams, 1, 65) == (1, 65)
    assert store.verify() == 65


def test_results_that_are_too_large_for_a_batch_are_fetched_alone(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    url = serve_node(node_of(chain), max_response_bytes=3_000)

    assert import_all(store, upstreams_at(url)) == (1, HEIGHTS - 1)

    for item in chain.blocks[: HEIGHTS - 1]:
        assert store.reads.results(item.block.header.height) == item.results


class Pruned(View):
    """Reads of a node without blocks below a height, and without results below another."""

    def __init__(self, inner: ChainBackend, base: int, results: int) -> None:
        super().__init__(inner)
        self.base, self.with_results = base, results

    def base_height(self) -> int:
        return self.base

    def block(self, height: int) -> tuple[BlockID, Block]:
        if height < self.base:
            raise HeightNotAvailable(height, self.base, self.latest_height())
        return super().block(height)

    def results(self, height: int) -> BlockResults:
        if height < self.with_results:
            raise ResultNotFound(f"could not find results for height #{height}")
        return super().results(height)


def pruned(inner: ChainBackend, base: int, results: int) -> ChainBackend:
    """Return a node without blocks below a height, and without results below another."""
    return ChainBackend(Pruned(inner, base, results))


def test_a_pruned_node_gives_what_it_has(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The node has blocks from one height on, and results from another one."""
    url = serve_node(pruned(node_of(chain), 12, 33))

    assert import_all(store, upstreams_at(url)) == (12, HEIGHTS - 1)

    assert store.reads.lowest_results() == 33
    with pytest.raises(ResultNotFound):
        store.reads.results(32)
    # Other nodes have the rest, one of them without results.
    lacks = serve_node(pruned(node_of(chain), 3, HEIGHTS))
    more = upstreams_at(url, lacks, serve_node(node_of(chain)))
    assert import_all(store, more) == (1, HEIGHTS - 1)
    assert store.reads.results(5) == chain.blocks[4].results
    store.verify()


class Boastful(Pruned):
    """A pruned node whose status names a lower height than its lowest block."""

    def base_height(self) -> int:
        return 1


def test_a_pruned_node_whose_status_names_another_height(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The lowest block is found by asking for blocks."""
    url = serve_node(ChainBackend(Boastful(node_of(chain), 33, 33)))

    assert import_all(store, upstreams_at(url)) == (33, HEIGHTS - 1)

    store.verify()


def test_a_node_that_is_down_may_have_what_others_lack(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The import does not end, and leaves out no results, until that node responds."""
    archive = serve_node(node_of(chain))
    for node in (pruned(node_of(chain), 40, 40), pruned(node_of(chain), 1, 40)):
        upstreams = upstreams_at(serve_node(node), "http://127.0.0.1:1")
        with pytest.raises(UpstreamUnavailable, match="can't be reached"):
            import_all(store, upstreams)
        assert store.reads.base_height() >= 40

    assert import_all(store, upstreams_at(archive)) == (1, HEIGHTS - 1)
    assert store.reads.lowest_results() == 1


def test_nodes_that_lack_different_results(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """Each node is only asked for results in its store."""
    urls = [serve_node(pruned(node_of(chain), base, base)) for base in (40, 20, 60)]

    assert import_all(store, upstreams_at(*urls)) == (20, HEIGHTS - 1)

    assert store.reads.lowest_results() == 20
    store.verify()


def test_a_trusted_header_proves_later_and_earlier_ones(
    chain: SampleChain, serve_node: Serve, tmp_path: Path
) -> None:
    """Signatures prove later headers, and hashes earlier ones."""
    url = serve_node(node_of(chain))
    for height, last in ((20, 60), (60, 20), (40, 40)):
        trusted = header_hash(chain.blocks[height - 1].block.header)
        options = FetchOptions(TrustOptions(height, trusted, TRUST.period))
        with_trust = make_store(tmp_path / f"{height}.db")
        try:
            assert import_all(with_trust, upstreams_at(url), 1, last, options) == (1, last)
        finally:
            with_trust.close()


def test_results_that_nothing_proves_are_compared_with_those_of_another_node(
    chain: SampleChain,
    serve_node: Serve,
    store: SQLiteBackend,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lying = Liar(node_of(chain))
    lying.of_results = lambda results: replace(results, end_block_events=(Event("no"),))
    urls = serve_node(lying), serve_node(node_of(chain))

    assert import_all(store, upstreams_at(*urls)) == (1, HEIGHTS - 1)

    assert "reports differ, and nothing proves either" in caplog.text


def test_another_trusted_header_refuses_the_upstream(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """Nothing is stored."""
    url = serve_node(node_of(chain))
    options = FetchOptions(TrustOptions(20, bytes(32), TRUST.period))
    with pytest.raises(UpstreamError, match="not the trusted one"):
        import_all(store, upstreams_at(url), options=options)
    assert not store.has_chain()


def test_an_old_head_is_not_trusted(
    recent_chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The error names the flag."""
    upstreams = upstreams_at(serve_node(node_of(recent_chain, RECENT)))
    options = FetchOptions()
    import_all(store, upstreams, 30, 40, options)
    with pytest.raises(ConfigurationError, match="--trust-period"):
        import_all(store, upstreams, 30, 41, options)


def test_a_node_of_another_chain_is_refused(
    chain: SampleChain,
    serve_node: Serve,
    store: SQLiteBackend,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Another node has the chain; the log has a line about the wrong one."""
    caplog.set_level(logging.ERROR)
    upstreams = upstreams_at(serve_node(node_of(chain)))
    other = upstreams_at(serve_node(node_of(chain)))
    with pytest.raises(UpstreamError, match="expected a node of chain 'elsewhere'"):
        import_all(store, other, options=FetchOptions(TRUST, chain_id="elsewhere"))
    assert "is not asked again" in caplog.text
    import_all(store, upstreams)
    with pytest.raises(ConfigurationError, match="pass another --database"):
        import_all(store, upstreams, options=FetchOptions(TRUST, chain_id="elsewhere"))


def test_two_importers_do_not_share_a_store(
    chain: SampleChain,
    serve_node: Serve,
    store: SQLiteBackend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error of the second names the process that holds the lease."""
    monkeypatch.setattr(lease, "_WAIT_S", 0.0)
    upstreams = upstreams_at(serve_node(node_of(chain)))
    import_all(store, upstreams, 40, 50)
    with held_lease(store), pytest.raises(StoreError, match="another process"):
        import_all(store, upstreams)
    import_all(store, upstreams)


def test_a_halted_node_does_not_hold_the_others(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The latest block of a halted node is too old to count; if no node has a recent block, all
    count."""
    urls = serve_node(node_of(chain, 20)), serve_node(node_of(chain))
    assert agree(store, upstreams_at(*urls), "", TRUST).latest == 20
    time = chain.blocks[-1].block.header.time + 595 * SECOND
    recent = replace(TRUST, clock=lambda: time)
    assert agree(store, upstreams_at(*urls), "", recent).latest == HEIGHTS
    importer = Importer(store, upstreams_at(*urls), FetchOptions(recent))
    importer.plan()
    assert importer.run(lambda count: None) == (1, HEIGHTS - 1)


# In PostgreSQL, fixtures make the tables before the test.
@pytest.mark.sqlite
def test_ranges_that_the_chain_does_not_have(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The error names the latest height, and no store is made."""
    upstreams = upstreams_at(serve_node(node_of(chain)))
    for first, last in ((1, HEIGHTS + 1), (50, 40), (HEIGHTS, None)):
        with pytest.raises(ConfigurationError, match=f"to {HEIGHTS}, the chain's latest"):
            import_all(store, upstreams, first, last)
    assert not store.is_made()


def test_the_command_imports_and_tells_how_to_serve(
    chain: SampleChain, serve_node: Serve, tmp_path: Path
) -> None:
    """The second import has nothing to do."""
    url, path = serve_node(node_of(chain), "comet-0.37"), tmp_path / "data" / "copy.db"
    command = ["import", url, "--database", str(path), "--trust-period", "99999d"]
    for _ in range(2):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
        assert f"has blocks 1 to {HEIGHTS - 1} of sample-chain" in done.output
        assert "--dialect comet-0.37" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ftp://user:secret@host"], "http://host:port"),
        (["http://host:port"], "http://host:port"),
        (["http://a", "http://a"], "http://a:80 twice"),
        (["http://a", "--trust", "12"], "64 hexadecimal digits"),
        (["http://a", "--trust-period", "week"], "as 14d"),
        (["http://a", "--unchecked", "height"], "expected some of app_hash"),
        (["http://a", "--upstream-dialect", "comet-9"], "expected one of"),
        (["http://a", "--home", "."], "expected one of them"),
    ],
)
def test_bad_arguments_are_refused(arguments: list[str], said: str, tmp_path: Path) -> None:
    """The error is one line without credentials, and no file is made."""
    path = tmp_path / "copy.db"
    done = CliRunner().invoke(main, ["import", *arguments, "--database", str(path)])
    assert done.exit_code != 0
    assert said in done.output
    assert "secret" not in done.output
    assert "Traceback" not in done.output
    assert not path.exists()


def first_without_results_hash(height: int) -> SampleChain:
    """Return a chain with a block whose header has an empty ``last_results_hash``."""
    maker = ChainMaker((10, 7, 3))
    blocks = [*make_blocks(maker, height - 1, 1)]
    maker.head = replace(maker.head, results_hash=b"")
    blocks += make_blocks(maker, 10, 1)
    return SampleChain(maker.genesis, maker.state, tuple(blocks))


def test_a_first_block_without_a_hash_of_results_is_verified(
    serve_node: Serve, store: SQLiteBackend
) -> None:
    """Tendermint before 0.34 made such first blocks; a later block has a hash."""
    chain = first_without_results_hash(1)
    url = serve_node(node_of(chain, 10))

    assert import_all(store, upstreams_at(url)) == (1, 9)

    assert store.reads.block(1)[1].header.last_results_hash == b""
    assert store.verify() == 9
    with pytest.raises(InvalidBlock, match="block 2: last_results_hash: expected "):
        node_of(first_without_results_hash(2), 10)
