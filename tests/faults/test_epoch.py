"""Tests of the memory that a block with large results takes, such as the last one of an epoch
on Osmosis, in processes that import, follow, verify and serve it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from benchmarks.process import descent
from benchmarks.realistic.content import SHAPES, Content, content, events_of
from benchmarks.realistic.maker import Maker, genesis_of
from benchmarks.realistic.signers import signers
from flask_noderpc import ChainBackend, CommittedBlock, MemoryChain
from flask_noderpc.backends.base.application import InitChain
from flask_noderpc.domain.abci import Event
from flask_noderpc.protocol.comet.chain_state import ChainState
from flask_noderpc.testing.node import app_for, serve
from flask_noderpc.wire.dialects import dialect_named
from tests.helpers.growing import grow
from tests.helpers.http import call, get
from tests.helpers.ports import free_port
from tests.helpers.postgres import Cluster
from tests.helpers.process import Process, killed

pytestmark = pytest.mark.integration

SHAPE, DIALECT = SHAPES["small"], "comet-0.38"
HEIGHTS, LARGE = 6, 5
# Number of attributes in the large results, each of which has about 85 bytes of JSON.
ATTRIBUTES = 240_000
MOST = 4
"""Maximum peak of memory, in multiples of the JSON's size."""

_MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain with large results, the size of their JSON, and the same chain without them."""

    blocks: list[CommittedBlock]
    size: int
    without: list[CommittedBlock]


def make_events(attributes: int, seed: int) -> tuple[Event, ...]:
    random = Random(seed)
    # Each transaction of the shape has other accounts and amounts.
    return tuple(event for _ in range(attributes // 36) for event in events_of(36, random))


def make_large(made: Content, share_in_txs: float) -> Content:
    """Return the content of a block with large results, some of them in transactions."""
    txs = made.results.tx_results
    own = make_events(int(ATTRIBUTES * (1 - share_in_txs)), len(txs))
    each_tx = int(ATTRIBUTES * share_in_txs) // len(txs)
    tx_results = tuple(
        replace(each, events=make_events(each_tx, seed)) for seed, each in enumerate(txs)
    )
    return replace(
        made, results=replace(made.results, tx_results=tx_results, end_block_events=own)
    )


def make_blocks(share_in_txs: float | None) -> Iterator[CommittedBlock]:
    with signers(SHAPE, 0) as pool:
        maker = Maker(SHAPE, ChainState.at_genesis(genesis_of(SHAPE), b""), pool)
        for height in range(1, HEIGHTS + 1):
            made = content(SHAPE, height)
            is_large = height == LARGE and share_in_txs is not None
            yield maker.block(make_large(made, share_in_txs or 0) if is_large else made)


@pytest.fixture(
    scope="module", params=[0.1, 0.9], ids=["events of the block", "events of transactions"]
)
def chain(request: pytest.FixtureRequest) -> Chain:
    blocks = [*make_blocks(request.param)]
    size = len(dialect_named(DIALECT).encode(blocks[LARGE - 1].results))
    return Chain(blocks, size, [*make_blocks(None)])


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def node_of(blocks: list[CommittedBlock]) -> ChainBackend:
    return ChainBackend(MemoryChain(genesis_of(SHAPE), tuple(blocks), state=InitChain()))


def serve_node(stack: ExitStack, node: ChainBackend) -> str:
    app = app_for(node, dialect=DIALECT, max_response_bytes=1 << 30)
    return stack.enter_context(serve(app))


def measure(*words: str) -> int:
    """Run a command of noderpc; return the peak of its memory in bytes."""
    noderpc = str(Path(sys.executable).with_name("noderpc"))
    # A small process starts the command, as Linux counts the memory of the one that starts it.
    found = subprocess.run(
        [sys.executable, "-c", _MEASURED, noderpc, *words], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return int(found.stdout.split()[-1]) * 1024


def measure_import(stack: ExitStack, blocks: list[CommittedBlock], store: str) -> int:
    url = serve_node(stack, node_of(blocks))
    return measure("import", url, "--trust-period", "99999d", "--database", store)


def test_import_and_verification_take_few_times_the_size_of_large_results(
    chain: Chain, stack: ExitStack, tmp_path: Path
) -> None:
    large, usual = str(tmp_path / "large.db"), str(tmp_path / "usual.db")
    imported = measure_import(stack, chain.blocks, large)
    check(chain, imported, measure_import(stack, chain.without, usual))
    check(chain, measure("verify", large), measure("verify", usual))


def test_an_import_into_postgresql_takes_few_times_the_size_of_large_results(
    chain: Chain, stack: ExitStack
) -> None:
    cluster = stack.enter_context(closing(Cluster()))
    imported = measure_import(stack, chain.blocks, cluster.new_database())
    check(chain, imported, measure_import(stack, chain.without, cluster.new_database()))


def check(chain: Chain, peak: int, usual: int) -> None:
    """Check the peak of memory of a command, given that on the chain without large results."""
    # At least the JSON itself is in memory, or the peak was not measured.
    assert chain.size / 2 < peak - usual < MOST * chain.size


def follow(stack: ExitStack, blocks: list[CommittedBlock], folder: Path) -> int:
    """Follow a node until its last block, and serve the large results; return the highest peak
    of memory of a process."""
    node = node_of(blocks[: LARGE - 2])
    upstream, port = serve_node(stack, node), free_port()
    url = f"http://127.0.0.1:{port}"
    words = [str(Path(sys.executable).with_name("noderpc")), "start", "--upstream", upstream]
    words += ["--home", str(folder), "--trust-period", "99999d"]
    words += ["--upstream-poll", "0.05", "--rpc.laddr", f"tcp://127.0.0.1:{port}"]
    process = stack.enter_context(killed(Process(words, folder / "log")))

    def latest() -> int:
        status = get(url, "/status").result
        return int(status["sync_info"]["latest_block_height"])

    process.until_answered(latest)
    grow(node, *blocks[LARGE - 2 :])
    process.until(lambda: latest() == HEIGHTS, "the last block")
    path = f"/block_results?height={LARGE}"
    assert digest(get(url, path).body) == digest(get(upstream, path).body)
    with ThreadPoolExecutor(4) as threads:
        params = {"height": str(LARGE)}
        sent = [threads.submit(call, url, "block_results", params, each) for each in range(4)]
        assert [each.result().status for each in sent] == [200] * 4
    found = call(url, "tx_search", {"query": f"tx.height={LARGE}", "per_page": "100"})
    assert int(found.result["total_count"]) == SHAPE.txs
    return max(map(peak_bytes, descent(process.pid)))


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def test_a_companion_takes_few_times_the_size_of_large_results(
    chain: Chain, stack: ExitStack, tmp_path: Path
) -> None:
    peaks = []
    for name, blocks in (("large", chain.blocks), ("usual", chain.without)):
        folder = tmp_path / name
        folder.mkdir()
        peaks.append(follow(stack, blocks, folder))
    check(chain, *peaks)
