"""Signatures of a block's votes, made by several processes at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context
from multiprocessing.pool import Pool
from typing import NamedTuple

from flask_noderpc.protocol.comet.keys import PrivateKey

from .content import Shape


class Unsigned(NamedTuple):
    """A vote's sign bytes, and the number of its validator's key."""

    key: int
    message: bytes


class Signers:
    """Signs in this process and in the processes of a pool."""

    def __init__(self, shape: Shape, pool: Pool | None = None, processes: int = 0) -> None:
        self._shape, self._pool, self._processes = shape, pool, processes

    def sign(self, votes: Sequence[Unsigned]) -> list[bytes]:
        """Return the signature of each vote."""
        share = -(-len(votes) // (self._processes + 1))
        own, others = votes[:share], votes[share:]
        begun = [
            self._pool.apply_async(_sign, (self._shape, others[at : at + share]))
            for at in range(0, len(others), share)
            if self._pool is not None
        ]
        signed = _sign(self._shape, own)
        for each in begun:
            signed += each.get()
        return signed


@contextmanager
def signers(shape: Shape, processes: int) -> Iterator[Signers]:
    """Yield signers with this number of additional processes."""
    if not processes:
        yield Signers(shape)
        return
    with get_context("forkserver").Pool(processes) as pool:
        yield Signers(shape, pool, processes)


def _sign(shape: Shape, votes: Sequence[Unsigned]) -> list[bytes]:
    return [_key(shape, number).sign(message) for number, message in votes]


@cache
def _key(shape: Shape, number: int) -> PrivateKey:
    return shape.key(number)
