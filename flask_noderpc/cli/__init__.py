"""Commands: ``flask noderpc …`` for the current app, and ``noderpc …`` for a store or a home.

Each command imports only what it needs. ``noderpc start`` is imported alone, so that it starts
fast and uses little memory: neither Flask nor the other commands are imported for it.
"""

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from ..server.output import exit_status
from .command import Failed

if TYPE_CHECKING:
    from .app import cli
    from .node import main

__all__ = ["cli", "main"]


def _check_flags() -> None:
    flags = Counter(flag for option in main.commands["start"].params for flag in option.opts)
    for flag, count in flags.items():
        if count > 1:
            raise ConfigurationError(
                f"the flag {flag} of noderpc start is declared {count} times; rename the"
                " setting or the page set of a feature"
            )


def _exit(error: ConfigurationError) -> None:
    """Report the error here, as a broken feature prevents all commands."""
    Failed(str(error)).show()
    sys.exit(exit_status(error))


try:
    from .node import load_commands, main

    _check_flags()
except ConfigurationError as error:
    _exit(error)


def __getattr__(name: str) -> Any:
    if name != "cli":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        load_commands()
    except ConfigurationError as error:
        _exit(error)
    from .app import cli

    return cli
