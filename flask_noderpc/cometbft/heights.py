"""Heights and pages of parameters, with CometBFT's error texts."""

from __future__ import annotations

from dataclasses import dataclass

from ..backends.base.backend import ChainBackend
from ..errors import HeightNotAvailable, ResultNotFound, ValueNotAllowed
from ..jsonrpc.params import Params, param
from ..wire.params import Int64

# CometBFT: rpc/core/env.go.
DEFAULT_PER_PAGE = 30
MAX_PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class AtHeight(Params):
    """For routes about one block."""

    height: int | None = param(
        Int64(), default=None, doc="Height to read; the latest when omitted."
    )


def block_height(backend: ChainBackend, wanted: int | None) -> int:
    """Return the height of a block; the latest if none is given.

    A given height may be missing: the backend raises when it is read.
    """
    if wanted is not None:
        return _positive(wanted)
    latest = backend.latest_height()
    if latest == 0:
        raise ResultNotFound("the chain has no block yet")
    return latest


def next_height(backend: ChainBackend) -> int:
    """Return the height of the next block."""
    return (backend.latest_height() or backend.genesis().initial_height - 1) + 1


def state_height(backend: ChainBackend, wanted: int | None) -> int:
    """Return a height whose state is known: up to one above the latest, the default."""
    # CometBFT: while blocks are being fetched, the state above the latest is not known.
    known = next_height(backend) - (1 if backend.network.catching_up() else 0)
    if wanted is None:
        return known
    base = backend.base_height()
    if not base <= _positive(wanted) <= known:
        raise HeightNotAvailable(wanted, base, known)
    return wanted


def _positive(height: int) -> int:
    if height <= 0:
        raise ValueNotAllowed(f"height must be greater than 0, but got {height}")
    return height


def per_page(wanted: int | None) -> int:
    """Return the page size. CometBFT: too little means the default, too much the maximum."""
    if wanted is None or wanted < 1:
        return DEFAULT_PER_PAGE
    return min(wanted, MAX_PER_PAGE)


def page_slice(total: int, page: int | None, size: int) -> slice:
    """Return the slice of one page; raise ``ValueNotAllowed`` past the last."""
    pages = max(1, -(-total // size))
    number = 1 if page is None else page
    if not 1 <= number <= pages:
        raise ValueNotAllowed(f"page should be within [1, {pages}] range, given {number}")
    return slice((number - 1) * size, number * size)
