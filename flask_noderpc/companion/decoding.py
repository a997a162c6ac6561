"""Decode many blocks in separate processes, while this process stores blocks.

These processes also compute the hashes, packed rows and index entries of each block. A
decoding process is ``python -m flask_noderpc.companion.decoding FD``, with the file
descriptor of its socket as the argument.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from io import BytesIO
from operator import attrgetter
from typing import Any, NamedTuple

from .. import jsoncodec
from ..backends.sql.block_writes import Precomputed, precomputed_apart
from ..concurrency import usable_cores
from ..domain.abci import BlockResults
from ..domain.responses import ResultBlock
from ..errors import DecodeError, ExecutionFailed
from ..executors.pool import Executors, module_command
from ..executors.process import serve
from ..wire.dialect import Dialect
from ..wire.dialects import dialect_named

# Decode fewer bytes here: sending them to another process would take longer.
_WORTH_BYTES = 200_000
# Decode larger documents here, where that takes less memory: a block's results may have 50 MB.
_MOST_BYTES = 10_000_000
# A companion that follows a chain leaves the other cores to its server.
_FEW = 2
# Each fetching thread has at most one job, so the queue is never full; the seconds limit the
# time in the queue and for decoding.
_QUEUE_SIZE, _PATIENCE_S = 64, 60.0

Documents = tuple[jsoncodec.Document, jsoncodec.Document]
"""JSON of a block, and of its results."""


class DecodedBlock(NamedTuple):
    """A block of a node with its results, and with its hashes, rows and index entries."""

    found: ResultBlock
    results: BlockResults
    """Results, without the events of transactions if these are in ``precomputed``."""
    precomputed: Precomputed | None


class Decoders:
    """Decoding processes, which start when they are needed; by default up to two if there are
    spare cores.

    The object may be shared among threads and greenlets.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = min(_FEW, spare_cores()) if count is None else count
        self._executors = Executors(
            module_command(f"{__package__}.decoding"), self._count, _QUEUE_SIZE
        )

    def decode(self, dialect: str, blocks: Sequence[Documents]) -> list[DecodedBlock] | None:
        """Return the decoded blocks, or ``None`` if the caller must decode them: if a document
        is invalid, the documents are short, or no process is available."""
        sizes = [len(memoryview(each)) for pair in blocks for each in pair]
        if not self._count or sum(sizes) < _WORTH_BYTES or max(sizes, default=0) > _MOST_BYTES:
            return None
        if not self._executors.is_ready():
            # The processes take a while to start; meanwhile the caller decodes.
            self._executors.start()
            return None
        try:
            job = _Decode(dialect, [(bytes(block), bytes(found)) for block, found in blocks])
            found = self._executors.run(job, _PATIENCE_S)
        except (ExecutionFailed, DecodeError):
            return None
        values: list[DecodedBlock] = pickle.loads(found)
        return values

    def close(self) -> None:
        """End the processes; they start again when they are needed."""
        self._executors.close()


IN_THIS_PROCESS = Decoders(0)


def spare_cores() -> int:
    """Return the number of cores that this process may use besides one."""
    return usable_cores() - 1


@dataclass(frozen=True, slots=True)
class _Decode:
    """A job for a decoding process: returns the decoded blocks, pickled."""

    dialect: str
    blocks: list[tuple[bytes, bytes]]

    def __call__(self, named: Callable[[str], Dialect]) -> bytes:
        dialect = named(self.dialect)
        file = BytesIO()
        _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(
            [_decoded(dialect, *documents) for documents in self.blocks]
        )
        return file.getvalue()


def _decoded(dialect: Dialect, block: bytes, of_results: bytes) -> DecodedBlock:
    found = dialect.decode(ResultBlock, block)
    results = dialect.decode(BlockResults, of_results)
    if found.block is None:
        return DecodedBlock(found, results, None)
    return DecodedBlock(found, *precomputed_apart(found.block, results))


class _Pickler(pickle.Pickler):
    """Pickles a dataclass as a call with its fields, which takes half the time of
    ``__setstate__``."""

    def reducer_override(self, value: Any) -> Any:
        """Return how to rebuild a value."""
        kind = type(value)
        if not is_dataclass(kind):
            return NotImplemented
        return kind, _fields_of(kind)(value)


@cache
def _fields_of(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    names = [field.name for field in fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


if __name__ == "__main__":
    serve(dialect_named, int(sys.argv[1]))
