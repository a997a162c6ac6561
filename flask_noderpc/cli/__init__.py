"""``flask noderpc …`` for the current app, and ``noderpc …`` for a store or a home.

Each command imports only what it needs: ``noderpc start`` supervises the serving processes and
starts faster and uses less memory without the rest.
"""

from importlib import import_module

from ..feature import features
from . import genesis as genesis
from . import store as store
from .app import cli
from .node import main

for _feature in features():
    for _module in _feature.commands:
        import_module(_module)

__all__ = ["cli", "main"]
