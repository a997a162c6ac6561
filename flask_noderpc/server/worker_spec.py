"""What the processes of one node do: told to each of them when it starts."""

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
    """Where the host's app is, as ``flask --app`` has it; empty for the node's own."""
    mount: str = "noderpc"
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the node's own app, by their names."""
    folder: str = ""
    """Where that keeps its chain."""
    restarted: bool = False
    """True if one before it was ready: it serves also where the node can't start now, to say
    so."""

    def encode(self) -> str:
        """As it is handed on."""
        return jsoncodec.encode(self).decode()

    @classmethod
    def decode(cls, text: str) -> WorkerSpec:
        """What :meth:`encode` made."""
        return jsoncodec.decode(text.encode(), cls)
