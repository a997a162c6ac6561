"""A backend that tells something else than is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flask_noderpc import SQLiteBackend
from flask_noderpc.chain.applications.merkle_kvstore import MerkleKVStore
from flask_noderpc.testing.node import app_for, serve

from .verified import TRUSTED

Lies = Mapping[str, Callable[[Any], Any]]
"""By the backend's method, what is made of its answer."""


@contextmanager
def served(path: Path, lies: Lies) -> Iterator[str]:
    """A stored chain at an address, with lies about all but the height that is trusted."""
    backend = SQLiteBackend(path, application=MerkleKVStore)
    for method, lie in lies.items():
        setattr(backend, method, _told(getattr(backend, method), lie))
    try:
        with serve(app_for(backend, dialect="comet-0.38")) as url:
            yield url
    finally:
        backend.close()


def _told(truth: Callable[..., Any], lie: Callable[[Any], Any]) -> Callable[..., Any]:
    def tell(subject: object, *rest: object) -> Any:
        found = truth(subject, *rest)
        return found if subject == TRUSTED else lie(found)

    return tell
