"""What a backend has open in one process, and how a fork finds it."""

from __future__ import annotations

import os
import threading

from . import forks, ledger
from .connection import Readers, Store
from .writer import Writer

# How long a fork waits for reads under way.
_FORK_PATIENCE_S = 5.0


class Files:
    """The open files of one process; no SQLite handle may cross a fork."""

    def __init__(self, store: Store) -> None:
        self.process = os.getpid()
        self.readers = Readers(store)
        self.writer = Writer(store)
        self.ledger = ledger.Ledger()
        self.changed = threading.Condition()
        self.quiet = True
        """Whether nothing was open at the last fork."""
        forks.watch(self)

    def hold(self) -> None:
        """Close everything, and let nothing begin: the process is about to fork."""
        self.writer.between_writes.__enter__()
        self.writer.let_go()
        self.quiet = self.readers.hold(_FORK_PATIENCE_S)

    def go_on(self) -> None:
        """Let reads and writes begin again; they open what they need."""
        self.readers.go_on()
        self.writer.between_writes.__exit__(None, None, None)

    def notify(self) -> None:
        """Wake those who wait for blocks or transactions."""
        with self.changed:
            self.changed.notify_all()
