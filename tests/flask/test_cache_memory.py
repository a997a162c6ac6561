"""Tests that one setting limits the memory of all caches of an app together."""

from __future__ import annotations

import gc
import os
import re
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from flask import Flask

from flask_noderpc import NodeRPC
from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.extension import mounts
from flask_noderpc.lru import CacheMemory, LRUCache

# Without a limit, the responses of this many blocks take 1.6 MB.
BLOCKS, LIMIT = 80, 350_000
# Bytes that remembered parameters, which are bounded by count, and small caches of other
# libraries take.
FIXED = 500_000
# Number of blocks after which all other memory stays the same.
FEW = 5


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedChain]:
    folder: Path = tmp_path_factory.mktemp("chain")
    made = EmbeddedChain(folder / "c.db", clock=ManualClock(), produce=False, dev=True)
    made.start()
    for number in range(BLOCKS):
        made.mempool.submit(b"k%d=v" % number)
        made.produce()
    yield made
    made.close()


def app_with_mounts(chain: EmbeddedChain, cache_bytes: int) -> Flask:
    from flask_noderpc.ethereum.settings import EthereumSettings

    app = Flask("host")
    for name, dialect in (("one", "document"), ("two", "comet-0.38")):
        NodeRPC(
            app,
            backend=chain,
            name=name,
            url_prefix=f"/{name}",
            dialect=dialect,
            cache_bytes=cache_bytes,
            settings=[EthereumSettings(json_rpc_enable=True)],
            metrics=name == "one",
        )
    return app


@contextmanager
def growth() -> Iterator[Callable[[], int]]:
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()

        def grown() -> int:
            gc.collect()
            return tracemalloc.get_traced_memory()[0] - before

        yield grown
    finally:
        tracemalloc.stop()


def asks(app: Flask, blocks: int = BLOCKS) -> None:
    """Send requests for cached responses of this many blocks to each mount."""
    client = app.test_client()
    for prefix in ("/one", "/two"):
        for height in range(1, blocks):
            assert client.get(f"{prefix}/block?height={height}").status_code == 200
            call = {"id": 1, "jsonrpc": "2.0", "method": "eth_getBlockByNumber"}
            for full in (True, False):
                body = {**call, "params": [hex(height), full]}
                assert "result" in (client.post(f"{prefix}/evm", json=body).json or {})
            client.get(f'{prefix}/abci_query?path="x{height}"')


@pytest.mark.features
def test_all_caches_of_an_app_share_the_setting(chain: EmbeddedChain) -> None:
    asks(app_with_mounts(chain, LIMIT), FEW)
    app = app_with_mounts(chain, LIMIT)
    app.test_client().get("/one/health")
    (memory,) = {id(mount.memory): mount.memory for mount in mounts(app).values()}.values()
    with growth() as grown:
        asks(app)
        taken = grown()
    # The cache was full, and its limit includes Python's overhead.
    assert LIMIT * 0.8 < memory.used <= LIMIT
    assert taken < LIMIT + FIXED


@pytest.mark.features
def test_counted_cache_bytes_are_the_bytes_used(chain: EmbeddedChain) -> None:
    asks(app_with_mounts(chain, 1 << 30), FEW)
    app = app_with_mounts(chain, 1 << 30)
    memory = next(iter(mounts(app).values())).memory
    app.test_client().get("/one/health")
    before = memory.used
    with growth() as grown:
        asks(app)
        taken = grown()
    assert taken < (memory.used - before) * 1.1
    assert memory.used < taken * 3


@pytest.mark.features
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for memory")
def test_the_page_of_numbers_shows_both(chain: EmbeddedChain) -> None:
    app = app_with_mounts(chain, LIMIT)
    asks(app, FEW)
    memory = next(iter(mounts(app).values())).memory
    text = app.test_client().get("/one/metrics").text
    shown = dict(re.findall(r"^(noderpc_\S+) (\S+)$", text, re.MULTILINE))
    assert float(shown["noderpc_cache_bytes"]) == memory.used > 0
    assert float(shown["noderpc_cache_limit_bytes"]) == LIMIT
    resident = float(shown[f'noderpc_resident_bytes{{pid="{os.getpid()}"}}'])
    assert memory.used < resident


def test_the_largest_cache_bytes_of_mounts_is_the_limit_and_zero_disables_it(
    chain: EmbeddedChain,
) -> None:
    app = Flask("host")
    for name, size in (("one", 0), ("two", LIMIT)):
        NodeRPC(app, backend=chain, name=name, url_prefix=f"/{name}", cache_bytes=size)
    memory = mounts(app)["one"].memory
    assert memory.limit == LIMIT
    client = app.test_client()
    client.get("/one/block?height=1")
    assert memory.used == 0
    client.get("/two/block?height=1")
    assert memory.used > 0


def of_size(memory: CacheMemory) -> LRUCache[int, bytes]:
    return LRUCache(1_000_000, memory.limit, len, memory)


def test_the_largest_cache_evicts_first() -> None:
    memory = CacheMemory(10_000)
    large, small = of_size(memory), of_size(memory)
    for number in range(20):
        large.put(number, bytes(500))
    small.put(0, bytes(500))
    assert memory.used <= 10_000
    for number in range(20):
        small.put(number, bytes(500))
    # In time, both caches have the same size.
    assert abs(large.bytes - small.bytes) < 2 * 700
    assert small.get(19) is not None
    large.clear()
    assert memory.used == small.bytes


def test_an_entry_larger_than_the_limit_evicts_all_others() -> None:
    memory = CacheMemory(10_000)
    one, other = of_size(memory), of_size(memory)
    one.put(1, bytes(100))
    other.put(1, bytes(20_000))
    assert (one.count, other.count) == (0, 1)
    one.put(2, bytes(100))
    assert (one.count, other.count) == (1, 0)
