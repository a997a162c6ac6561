"""Replay of stored blocks into an application that is behind them."""

from __future__ import annotations

from ..backends.base.application import Application
from ..backends.base.backend import ChainBackend
from ..errors import StoreError
from . import proposal


def replay(store: ChainBackend, application: Application) -> None:
    """Execute the stored blocks above the application's last height.

    Raise :exc:`~flask_noderpc.errors.StoreError` if the app hash differs from the stored
    one, or if the application is ahead of the store.
    """
    executed, latest = application.info().last_block_height, store.latest_height()
    if executed > latest:
        raise StoreError(f"the application is at height {executed}, its store at {latest}")
    base = store.base_height()
    if executed + 1 < base and base > store.genesis().initial_height:
        # CometBFT: state/errors.go, ErrAppBlockHeightTooLow.
        raise StoreError(
            f"app block height ({executed}) is too far below block store base ({base})"
        )
    first = max(executed + 1, base)
    for height in range(first, latest + 1) if latest else ():
        block_id, block = store.block(height)
        members, next_members = store.validators(height), store.validators(height + 1)
        execution = application.finalize_block(
            proposal.request(block, block_id.hash, members, next_members)
        )
        if execution.app_hash != store.results(height).app_hash:
            raise StoreError(f"the application comes to another state at height {height}")
        application.commit(height)
