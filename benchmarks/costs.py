"""Cost of single steps: ``python -m benchmarks.costs``.

Prints the figures of docs/design.rst that no other benchmark measures, each the best of several
rounds. ``pip install httptools`` adds that parser of request heads for comparison.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from io import BufferedReader, BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from timeit import repeat

from trie.hexary import HexaryTrie

from flask_noderpc import DIALECTS, SQLiteBackend
from flask_noderpc.concurrency import NativeThread
from flask_noderpc.domain.responses import ResultBlock
from flask_noderpc.ethereum.engine.evm import Evm
from flask_noderpc.ethereum.protocol.rlp import encode
from flask_noderpc.ethereum.protocol.trie import ordered_root
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.server.http import Fields, HeadReader
from flask_noderpc.server.http import _check as check_framing
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.wire.schema import compiled
from tests.ethereum.engine.jobs import NoRecords, Runs, WhoAmI, executors

HEAD = (
    b"GET /block?height=5 HTTP/1.1\r\nHost: 127.0.0.1:26657\r\nUser-Agent: axios/1.7.7\r\n"
    b"Accept: application/json, text/plain, */*\r\nAccept-Encoding: gzip, deflate, br\r\n"
    b"Accept-Language: en-US,en;q=0.9\r\nConnection: keep-alive\r\n\r\n"
)
GAS = 2_000_000
# JUMPDEST, PUSH1 0, JUMP: until the gas is used up.
LOOP = bytes.fromhex("5b600056")
PATIENCE_S = 60.0


def _microseconds(work: Callable[[], object], number: int = 1000) -> float:
    return min(repeat(work, number=number, repeat=5)) / number * 1e6


def heads() -> Iterator[str]:
    """Measure how long it takes to read the head of a wallet's GET."""

    def first() -> None:
        assert HeadReader(BufferedReader(BytesIO(HEAD))).read()

    yield f"request head: {_microseconds(first):.1f} µs"
    # timeit: five times a thousand.
    reader = HeadReader(BufferedReader(BytesIO(HEAD * 5_001)))
    reader.read()
    yield f"request head, headers as before: {_microseconds(reader.read):.1f} µs"
    try:
        from httptools import HttpRequestParser
    except ImportError:
        return
    fields = Fields()

    class Events:
        """Callbacks of the parser."""

        def on_url(self, url: bytes) -> None:
            """Split it as our reader does."""
            url.decode("latin-1").partition("?")

        def on_header(self, name: bytes, value: bytes) -> None:
            """Collect a header as our reader does."""
            fields.setdefault(name.decode().lower(), []).append(value.decode("latin-1"))

    def parse() -> None:
        fields.clear()
        parser = HttpRequestParser(Events())
        parser.feed_data(HEAD)
        check_framing(fields, "HTTP/" + parser.get_http_version())

    yield f"request head, httptools: {_microseconds(parse):.1f} µs"


def encoding() -> Iterator[str]:
    """Measure encoding of a block with ten transactions, by compiled functions and by
    marshmallow."""
    made = ChainMaker().block(*(b"%d=1" % number for number in range(10)))
    result = ResultBlock(hashes.block_id(made.block)[0], made.block)
    dialect = DIALECTS["comet-0.38"]
    shape = dialect.schemas[ResultBlock]
    assert isinstance(shape, type)
    schema = shape()
    document = schema.dump(result)
    dump = compiled(shape)
    for name, ours, marshmallow in (
        ("dump", lambda: dump(result), lambda: schema.dump(result)),
        ("load", lambda: dialect.load(ResultBlock, document), lambda: schema.load(document)),
    ):
        fast, slow = _microseconds(ours, 200), _microseconds(marshmallow, 200)
        yield f"{name} of a block: {fast:.0f} µs, by marshmallow {slow:.0f} µs"


def store() -> Iterator[str]:
    """Measure reading the version of an unchanged chain, a call to a native thread, and
    pruning."""
    thread = NativeThread("costs")
    yield f"hop to a native thread and back: {_microseconds(lambda: thread.run(int)):.0f} µs"
    thread.stop()
    with TemporaryDirectory() as folder, closing(SQLiteBackend(Path(folder) / "a.db")) as chain:
        maker = ChainMaker()
        chain.init_chain(maker.genesis, maker.state)
        chain.append_block(*(maker.block(b"%d=1" % number) for number in range(1000)))
        yield f"version of the chain: {_microseconds(chain.reads.version):.1f} µs"
        blocks = iter([maker.block(b"new%d=1" % number) for number in range(100)])
        write = min(repeat(lambda: chain.append_block(next(blocks)), number=1, repeat=100))
        prune = min(repeat(lambda: chain.prune_some(900), number=1, repeat=20))
        yield f"write of a block: {write * 1000:.2f} ms"
        yield f"removal of 20 blocks: {prune * 1000:.2f} ms"


def roots() -> Iterator[str]:
    """Measure the root of a list of 100 values."""
    values = [b"%d" % number * 40 for number in range(100)]

    def by_trie() -> bytes:
        trie = HexaryTrie({})
        for index, value in enumerate(values):
            trie[encode(index)] = value
        return bytes(trie.root_hash)

    assert by_trie() == ordered_root(values)
    ours, other = (_microseconds(work, 20) for work in (lambda: ordered_root(values), by_trie))
    yield f"root of 100 values: {ours / 1000:.2f} ms, by the library trie {other / 1000:.2f} ms"


def evm() -> Iterator[str]:
    """Measure the engine's speed, and the overhead of its processes."""
    loop = Runs(LOOP, GAS)
    engine = Evm(NoRecords())
    seconds = min(repeat(lambda: loop(engine), number=1, repeat=3))
    yield f"EVM, a loop of jumps: {GAS / seconds / 1e6:.1f} million gas/s"
    with closing(executors()) as pool:
        started = time.perf_counter()
        pool.run(WhoAmI(), PATIENCE_S)
        yield f"first job of an executor: {time.perf_counter() - started:.2f} s"
        job = WhoAmI()
        yield f"empty job: {_microseconds(lambda: pool.run(job, PATIENCE_S), 200):.0f} µs"


def main() -> None:
    """Print all costs."""
    for measure in (heads, encoding, store, roots, evm):
        for line in measure():
            print(line, flush=True)


if __name__ == "__main__":
    main()
