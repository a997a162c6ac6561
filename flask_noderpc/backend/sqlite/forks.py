"""No SQLite handle may cross a fork.

SQLite keeps books of the locks that its process holds. A child inherits the books and not
the locks: it would write beside everyone else, and lose what it wrote. So a fork waits
until no write is under way, and the child closes what it inherited before it opens its own.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class OpenFiles(Protocol):
    """The files of one backend."""

    def hold(self) -> None:
        """Let no write begin."""

    def go_on(self) -> None:
        """Let writes begin again."""

    def abandon(self) -> None:
        """Close what was inherited."""


_one_at_a_time = threading.Lock()
_watched: WeakSet[OpenFiles] = WeakSet()
_held: list[OpenFiles] = []


def watch(files: OpenFiles) -> None:
    """Look after these files when the process forks."""
    with _one_at_a_time:
        _watched.add(files)


def _before() -> None:
    _one_at_a_time.acquire()
    _held.extend(_watched)
    for files in _held:
        files.hold()


def _in_parent() -> None:
    while _held:
        _held.pop().go_on()
    _one_at_a_time.release()


def _in_child() -> None:
    _watched.clear()
    inherited = list(_held)
    _in_parent()
    for files in inherited:
        files.abandon()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
