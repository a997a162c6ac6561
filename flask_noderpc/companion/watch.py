"""Watch a companion's store from the parent process of the workers."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ..backends.sql.store import ChainStore
from ..domain.network import BackfillProgress
from ..errors import BackendError
from ..server.output import Progress
from . import shared_state

log = logging.getLogger("flask_noderpc.start")


class BackfillBar:
    """A progress bar of a backfill; with ``is_shown`` false, nothing is printed."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._bar: Progress | None = None

    def show(self, progress: BackfillProgress | None) -> None:
        """Show the progress; the bar starts when blocks are missing, and ends when none is."""
        if progress is None or not self._is_shown:
            return
        if self._bar is None and progress.left:
            self._bar = Progress("backfill", done=progress.done)
        if self._bar is not None:
            self._bar.show(progress.done, progress.done + progress.left)
            if not progress.left:
                self.close()

    def close(self) -> None:
        """End the line of the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class CompanionWatch:
    """Shows the backfill, and notices when the nodes' dialect changes with an upgrade.

    ``dialect`` is the served dialect; empty if a setting fixes it. ``store`` is only read.
    """

    def __init__(self, store: ChainStore, dialect: str, *, has_bars: bool) -> None:
        self._store, self._dialect = store, dialect
        self._bar = BackfillBar(is_shown=has_bars)

    def changes(self) -> Mapping[str, Any]:
        """Return the current dialect as a setting; nothing if a setting fixes it."""
        try:
            # The store is created when a node first reports its chain.
            if self._store.is_made():
                self._bar.show(shared_state.backfill(self._store))
                self._look_at_dialect()
        except BackendError:
            # The disk is full, or the store is being replaced: the worker processes report
            # that.
            pass
        return {"dialect": self._dialect} if self._dialect else {}

    def _look_at_dialect(self) -> None:
        identity = self._store.identity()
        stored = identity.dialect if identity else ""
        if self._dialect and stored and stored != self._dialect:
            text = "the upstream nodes' dialect changed from %s to %s, which is served now"
            log.warning(text, self._dialect, stored)
            self._dialect = stored

    def close(self) -> None:
        """Close the store."""
        self._bar.close()
        self._store.close()
