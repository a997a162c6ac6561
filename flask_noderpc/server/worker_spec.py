"""Specifications of a node's worker processes, passed to each when it starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import jsoncodec

VARIABLE = "NODERPC_SERVE"
"""The variable of the environment that holds a process's plan."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket that listens, by its number, and what is served there."""

    descriptor: int
    surface: str
    """``node``, ``evm`` or ``evm_ws``."""
    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One process: where its app is from, what it serves, and whether it makes blocks."""

    watched: int
    """A socket whose other end is the parent's: it ends with the parent, and takes reports."""
    listeners: tuple[Listener, ...] = ()
    app: str = ""
    """Import path of the host's app, as of ``flask --app``; empty for the node's own."""
    mount: str = "noderpc"
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the node's own app, by name."""
    folder: str = ""
    """Folder of the chain of the node's own app."""
    restarted: bool = False
    """True if one before it was ready: it serves also where the node can't start now, to say
    so."""

    def encode(self) -> str:
        """As it is handed on."""
        return jsoncodec.encode(self).decode()

    @classmethod
    def decode(cls, text: str) -> WorkerSpec:
        """Decode the text that :meth:`encode` made."""
        return jsoncodec.decode(text.encode(), cls)
