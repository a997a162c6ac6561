"""A node that serves forged responses of a stored chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base.reads import ChainReads
from flask_noderpc.chain.applications.merkle_kvstore import MerkleKVStore
from flask_noderpc.testing.node import app_for, serve

from .verified import TRUSTED

Forgeries = Mapping[str, Callable[[Any], Any]]
"""Functions that forge a result, by the name of the backend's method."""


@contextmanager
def served(path: Path, forgeries: Forgeries, dialect: str = "comet-0.38") -> Iterator[str]:
    """Serve a stored chain, forged at each height except the trusted one."""
    backend = SQLiteBackend(path, application=MerkleKVStore)
    for method, forge in forgeries.items():
        owner: object = backend.application if method == "query" else backend.reads
        setattr(owner, method, _forged(getattr(owner, method), forge))
    # Otherwise the commit would be read without the signatures that the test forges.
    backend.reads.signed_header = partial(ChainReads.signed_header, backend.reads)  # type: ignore[method-assign]
    try:
        with serve(app_for(backend, dialect=dialect)) as url:
            yield url
    finally:
        backend.close()


def _forged(truth: Callable[..., Any], forge: Callable[[Any], Any]) -> Callable[..., Any]:
    def answer(subject: object, *rest: object) -> Any:
        found = truth(subject, *rest)
        return found if subject == TRUSTED else forge(found)

    return answer
