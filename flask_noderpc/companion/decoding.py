"""Decode many blocks in separate processes, while this process stores blocks.

A decoding process is ``python -m flask_noderpc.companion.decoding FD``, with the file
descriptor of its socket as the argument.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from io import BytesIO
from operator import attrgetter
from typing import Any

from .. import jsoncodec
from ..errors import DecodeError, ExecutionFailed
from ..executors.pool import Executors, module_command
from ..executors.process import serve
from ..wire.dialect import Dialect
from ..wire.dialects import dialect_named

# Decode fewer bytes here: sending them to another process would take longer.
_WORTH_BYTES = 200_000
# Decode larger documents here, where it takes less memory: a block's results may have 50 MB.
_MOST_BYTES = 10_000_000
# Two processes decode about as many blocks per second as one process stores.
_MAX_PROCESSES = 2
# Each fetching thread has at most one job, so the queue is never full; the seconds limit the
# time in the queue and for decoding.
_QUEUE_SIZE, _PATIENCE_S = 64, 60.0

Document = tuple[type[Any], jsoncodec.Document]
"""Type to decode, and its JSON."""


class Decoders:
    """Decoding processes, which start when they are needed if there are spare cores.

    The object may be shared among threads and greenlets.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = min(_MAX_PROCESSES, _spare_cores()) if count is None else count
        self._executors = Executors(
            module_command(f"{__package__}.decoding"), self._count, _QUEUE_SIZE
        )

    def decode(self, dialect: str, documents: Sequence[Document]) -> list[Any] | None:
        """Return the decoded documents, or ``None`` if the caller must decode them: if a
        document is invalid, the documents are short, or no process is available."""
        sizes = [len(memoryview(document)) for _, document in documents]
        if not self._count or sum(sizes) < _WORTH_BYTES or max(sizes, default=0) > _MOST_BYTES:
            return None
        if not self._executors.is_ready():
            # The processes take a while to start; meanwhile the caller decodes.
            self._executors.start()
            return None
        try:
            job = _Decode(dialect, tuple((kind, bytes(each)) for kind, each in documents))
            found = self._executors.run(job, _PATIENCE_S)
        except (ExecutionFailed, DecodeError):
            return None
        values: list[Any] = pickle.loads(found)
        return values

    def close(self) -> None:
        """End the processes; they start again when they are needed."""
        self._executors.close()


IN_THIS_PROCESS = Decoders(0)


def _spare_cores() -> int:
    try:
        return len(os.sched_getaffinity(0)) - 1
    except AttributeError:
        # macOS does not have this function.
        return (os.cpu_count() or 1) - 1


@dataclass(frozen=True, slots=True)
class _Decode:
    """A job for a decoding process: returns the decoded documents, pickled."""

    dialect: str
    documents: tuple[tuple[type[Any], bytes], ...]

    def __call__(self, named: Callable[[str], Dialect]) -> bytes:
        dialect = named(self.dialect)
        file = BytesIO()
        _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(
            [dialect.decode(kind, document) for kind, document in self.documents]
        )
        return file.getvalue()


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
