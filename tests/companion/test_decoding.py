"""Tests of processes that decode large blocks; without them, the fetching process decodes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend, jsoncodec
from flask_noderpc.backends.sql.block_writes import precompute
from flask_noderpc.companion import decoding
from flask_noderpc.companion.decoding import DecodedBlock, Decoders, Documents
from flask_noderpc.companion.pool import Upstreams
from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.upstream import NotDecoded, Upstream, call
from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.domain.responses import ResultBlock
from flask_noderpc.executors.pool import Executors
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import app_for
from flask_noderpc.wire.dialects import dialect_named
from tests.helpers.until import until

from .conftest import HEIGHTS, LIMITS, Serve, import_all, node_of
from .test_import import NODES

METHODS = "block", "block_results"


class CountingDecoders(Decoders):
    """Decoders that count the blocks that they decoded."""

    done = 0

    def decode(self, dialect: str, blocks: Sequence[Documents]) -> list[DecodedBlock] | None:
        found = super().decode(dialect, blocks)
        self.done += len(found or ())
        return found


@pytest.fixture
def decoders(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingDecoders]:
    """One decoding process that is used for documents of any size."""
    monkeypatch.setattr(decoding, "_WORTH_BYTES", 0)
    with closing(CountingDecoders(1)) as made:
        # Until the process has started, the caller decodes.
        until(lambda: made.decode("comet-0.38", []) is not None, "a process has started")
        yield made


@pytest.fixture(scope="module")
def documents(chain: SampleChain) -> Callable[[str], list[Documents]]:
    """Return a function that gives the blocks and results of a chain in a dialect."""

    def of(dialect: str) -> list[Documents]:
        client = app_for(node_of(chain), dialect=dialect).test_client()
        found = [
            [_result(client.get(f"/{method}?height={height}").data) for method in METHODS]
            for height in range(1, HEIGHTS)
        ]
        return [(block, results) for block, results in found]

    return of


def _result(body: bytes) -> bytes:
    _, _, rest = body.partition(b'"result":')
    return rest.strip()[:-1]


@pytest.mark.parametrize("dialect", NODES)
def test_values_are_those_of_this_process(
    dialect: str, decoders: CountingDecoders, documents: Callable[[str], list[Documents]]
) -> None:
    """The chain has evidence, and changes of validators and parameters."""
    found = decoders.decode(dialect, documents(dialect))

    own = dialect_named(dialect)
    assert found is not None
    for each, (block_json, results_json) in zip(found, documents(dialect), strict=True):
        block, results = (
            own.decode(ResultBlock, block_json),
            own.decode(BlockResults, results_json),
        )
        assert block.block is not None
        assert each.found == block
        assert each.precomputed == precompute(block.block, results)
        # The rows have the events of transactions.
        bare = tuple(replace(result, events=()) for result in results.tx_results)
        assert each.results == replace(results, tx_results=bare)


def test_what_does_not_decode_is_an_error_of_its_upstream(
    decoders: CountingDecoders, documents: Callable[[str], list[Documents]]
) -> None:
    some = documents("comet-0.38")[:3]
    node = Upstream("http://127.0.0.1:1", dialect="comet-0.34", decoders=decoders)

    assert decoders.decode("comet-0.38", [*some, (b'{"block":7}', b"{}")]) is None
    # The process continues after an error.
    assert decoders.decode("comet-0.38", some) is not None
    with pytest.raises(NotDecoded, match="block: the result can't be decoded"):
        node.load_blocks(
            [call("block"), call("block_results")],
            [jsoncodec.Raw(b'{"block":7}'), jsoncodec.Raw(b"{}")],
        )


def test_few_bytes_start_no_process(
    documents: Callable[[str], list[Documents]], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Executors] = []

    def start(executors: Executors) -> None:
        started.append(executors)

    monkeypatch.setattr(Executors, "start", start)
    some = documents("comet-0.38")

    assert Decoders(1).decode("comet-0.38", some[:2]) is None
    assert Decoders(0).decode("comet-0.38", some * 100) is None
    assert started == []
    assert Decoders(1).decode("comet-0.38", some * 100) is None
    assert len(started) == 1


def processes() -> set[int]:
    """Return the PIDs of the processes that decode for this one."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {each for each in map(int, children) if b"companion.decoding" in _command(each)}


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def test_an_import_is_decoded_by_processes_which_end_with_it(
    chain: SampleChain, store: SQLiteBackend, serve_node: Serve, decoders: CountingDecoders
) -> None:
    url = serve_node(node_of(chain))
    upstreams = Upstreams([Reader(Upstream(url, limits=LIMITS, decoders=decoders))], 0.1)
    upstreams.decoders = decoders

    assert import_all(store, upstreams) == (1, HEIGHTS - 1)

    assert decoders.done >= HEIGHTS - 1
    for item in chain.blocks[: HEIGHTS - 1]:
        height = item.block.header.height
        assert store.reads.block(height)[1] == item.block
        assert store.reads.results(height) == item.results
    # Each transaction and block is found by its events.
    assert store.verify() == HEIGHTS - 1
    upstreams.close()
    assert processes() == set()


def test_a_process_that_is_killed_is_replaced(
    decoders: CountingDecoders, documents: Callable[[str], list[Documents]]
) -> None:
    (pid,) = processes()
    os.kill(pid, signal.SIGKILL)

    some = documents("comet-0.38")
    until(lambda: decoders.decode("comet-0.38", some) is not None, "another one")
    assert processes() - {pid}
