"""Test kit for users of this package: a node on a free port, sample chains, and the tests that
every backend must pass.

Importing this package imports neither gevent nor pytest; only :mod:`.plugin` and
:mod:`.contract` need pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chains import SampleChain, make_chain
    from .node import Node, run_node

# Module of each public name, imported at first use: every run of pytest imports this package,
# for the plugin.
_HOMES = {"Node": "node", "SampleChain": "chains", "make_chain": "chains", "run_node": "node"}

__all__ = ["Node", "SampleChain", "make_chain", "run_node"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
