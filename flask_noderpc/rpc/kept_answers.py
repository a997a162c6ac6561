"""Encoded results that are asked for again, kept under the chain they were told of.

Nothing is ever invalidated: a chain that has changed has other keys.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import blake2b

from ..backend.version import ChainVersion
from ..kept import Kept
from .params import Params
from .route import Cache

# Beside its bytes: the key, the entry, and what Python needs for them.
_OVERHEAD_BYTES = 500
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Encoded:
    """A result as it is sent, and whether others may keep it."""

    result: bytes
    cacheable: bool = False
    etag: str = ""
    """Another one for each other result; empty where none is told."""


class KeptAnswers:
    """The results of one mount, bounded in bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._kept: Kept[Hashable, Encoded] = Kept(
            _MOST, most_bytes, lambda entry: len(entry.result) + _OVERHEAD_BYTES
        )

    def find(
        self, name: str, cache: Cache, params: Params, version: ChainVersion
    ) -> Encoded | None:
        """The result of a route at a version of the chain, if it is still there."""
        if cache.may_allow(params):
            settled = self._kept.get((name, params, version.history))
            if settled is not None:
                return settled
        return self._kept.get((name, params, version))

    def keep(
        self, name: str, params: Params, version: ChainVersion, encoded: Encoded
    ) -> Encoded:
        """The result, kept: for good if it is settled, and else while the chain stays."""
        etag = blake2b(encoded.result, digest_size=16).hexdigest()
        entry = Encoded(encoded.result, encoded.cacheable, etag)
        key = version.history if encoded.cacheable else version
        return self._kept.keep((name, params, key), entry)
