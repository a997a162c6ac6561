"""File states after a power loss: a record of all writes, replayed up to a point."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.helpers.require import require_program

from .processes import ROOT

_SECTOR = 512
_HEAD = struct.Struct("<cHqq")
_SHIM = Path(__file__).with_name("record_writes.c")


class Operation(NamedTuple):
    """An operation on a file: create, write, truncate, flush, link, rename or unlink. ``data``
    is the new name of a link or rename; the folder's name is empty."""

    kind: bytes
    name: str
    offset: int
    length: int
    data: bytes


def recorded(script: str, folder: Path, scratch: Path, *args: object) -> list[Operation]:
    """Run a Python script; return its operations on the files of a folder."""
    log = scratch / "record"
    log.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(_compiled(scratch)),
        "RECORD_FOLDER": str(folder.resolve()),
        "RECORD_LOG": str(log),
    }
    words = [sys.executable, "-c", script, *map(str, args)]
    subprocess.run(words, cwd=ROOT, env=environment, check=True)
    return list(_operations(log.read_bytes()))


@cache
def _compiled(scratch: Path) -> Path:
    library = scratch / "record_writes.so"
    words = [require_program("cc"), "-shared", "-fPIC", "-O1", str(_SHIM), "-o", str(library)]
    subprocess.run([*words, "-ldl", "-lpthread"], check=True)
    return library


def _operations(log: bytes) -> Iterator[Operation]:
    at = 0
    while at < len(log):
        kind, name_length, offset, length = _HEAD.unpack_from(log, at)
        at += _HEAD.size
        name = log[at : at + name_length].decode()
        at += name_length
        data = log[at : at + length] if kind in b"wrl" else b""
        at += len(data)
        yield Operation(kind, name, offset, length, data)


@dataclass
class _File:
    flushed: bytearray = field(default_factory=bytearray)
    pending: list[Operation] = field(default_factory=list)

    def flush(self) -> None:
        for each in self.pending:
            _apply(self.flushed, each)
        self.pending.clear()

    def after_crash(self, random: Random) -> bytes:
        """Return the content if only some of the writes since the last flush are on the
        disk."""
        content, share = self.flushed.copy(), random.choice((0.0, random.random(), 1.0))
        for each in self.pending:
            if random.random() < share:
                _apply(content, each)
            elif each.kind == b"w" and random.random() < share:
                for sector in _sectors(each):
                    if random.random() < share:
                        _apply(content, sector)
        return bytes(content)


def _apply(content: bytearray, done: Operation) -> None:
    if done.kind == b"t":
        del content[done.length :]
        content.extend(bytes(done.length - len(content)))
        return
    content.extend(bytes(max(0, done.offset - len(content))))
    content[done.offset : done.offset + len(done.data)] = done.data


def _sectors(done: Operation) -> Iterator[Operation]:
    """Yield a write's parts, each in one sector of the disk."""
    at, end = done.offset, done.offset + len(done.data)
    while at < end:
        following = min(end, (at // _SECTOR + 1) * _SECTOR)
        part = done.data[at - done.offset : following - done.offset]
        yield done._replace(offset=at, length=len(part), data=part)
        at = following


class Disk:
    """Files of a folder, with their flushed and their pending content."""

    def __init__(self, folder: Path) -> None:
        self._files = {
            each.name: _File(bytearray(each.read_bytes())) for each in folder.iterdir()
        }
        self._flushed = dict(self._files)
        self._entries: list[dict[str, _File | None]] = []

    def do(self, done: Operation) -> None:
        """Replay an operation."""
        if done.kind == b"u":
            self._rename({done.name: None})
        elif done.kind in b"rl":
            file = self._file(done.name)
            old = {done.name: None} if done.kind == b"r" else {}
            self._rename({**old, done.data.decode(): file})
        elif not done.name:
            self._flushed = dict(self._files)
            self._entries.clear()
        elif done.kind == b"s":
            self._file(done.name).flush()
        elif done.kind == b"c":
            self._file(done.name)
        else:
            self._file(done.name).pending.append(done)

    def _file(self, name: str) -> _File:
        if name not in self._files:
            self._rename({name: _File()})
        return self._files[name]

    def _rename(self, entries: dict[str, _File | None]) -> None:
        """Change entries of the folder atomically."""
        self._entries.append(entries)
        self._files = _with(self._files, [entries])

    def crash(self, random: Random, target: Path) -> None:
        """Write the files into an empty folder as a power loss at this point may leave them.

        A file system changes a folder's entries in order.
        """
        entries = self._entries[: random.randint(0, len(self._entries))]
        for name, file in _with(self._flushed, entries).items():
            (target / name).write_bytes(file.after_crash(random))


def _with(files: dict[str, _File], entries: list[dict[str, _File | None]]) -> dict[str, _File]:
    changed = {**files}
    for each in entries:
        for name, file in each.items():
            if file is None:
                changed.pop(name, None)
            else:
                changed[name] = file
    return changed
