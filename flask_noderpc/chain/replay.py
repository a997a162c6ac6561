"""Brings an application up to the blocks that are stored."""

from __future__ import annotations

from ..backends.base.application import Application
from ..backends.base.backend import ChainBackend
from ..errors import StoreError
from . import proposal


def replay(store: ChainBackend, application: Application) -> None:
    """Execute the blocks that an application with a store of its own has missed.

    Raise :exc:`~flask_noderpc.errors.StoreError` when it comes to another state than the
    one that was stored, or is ahead of the store.
    """
    done, latest = application.info().last_block_height, store.latest_height()
    if done > latest:
        raise StoreError(f"the application is at height {done}, its store at {latest}")
    base = store.base_height()
    if done + 1 < base and base > store.genesis().initial_height:
        # CometBFT: state/errors.go, ErrAppBlockHeightTooLow.
        raise StoreError(
            f"app block height ({done}) is too far below block store base ({base})"
        )
    first = max(done + 1, base)
    for height in range(first, latest + 1) if latest else ():
        block_id, block = store.block(height)
        members, following = store.validators(height), store.validators(height + 1)
        execution = application.finalize_block(
            proposal.request(block, block_id.hash, members, following)
        )
        if execution.app_hash != store.results(height).app_hash:
            raise StoreError(f"the application comes to another state at height {height}")
        application.commit(height)
