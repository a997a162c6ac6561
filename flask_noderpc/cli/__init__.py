"""``flask noderpc …`` for the current app, and ``noderpc …`` for a store or a home.

Each command imports only what it needs: ``noderpc start`` supervises the serving processes and
starts faster and uses less memory without the rest.
"""

from ..companion.commands import conform as conform
from ..companion.commands import importing as importing
from . import genesis as genesis
from . import store as store
from .app import cli
from .node import main

__all__ = ["cli", "main"]
