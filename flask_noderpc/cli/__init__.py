"""Commands: ``flask noderpc …`` for the current app, and ``noderpc …`` for a store or a home.

Each command imports only what it needs, so that ``noderpc start``, which only supervises
processes, starts fast and uses little memory.
"""

import sys
from collections import Counter
from importlib import import_module

from ..errors import ConfigurationError
from ..feature import features
from ..server.output import exit_status
from .command import Failed


def _load_commands_of_features() -> None:
    for feature in features():
        for name in feature.commands:
            try:
                import_module(name)
            except ImportError as error:
                raise ConfigurationError(
                    f"the commands {name} of the feature {feature.name!r} can't be imported:"
                    f" {error}; fix or uninstall the feature"
                ) from error


def _check_flags() -> None:
    flags = Counter(flag for option in main.commands["start"].params for flag in option.opts)
    for flag, count in flags.items():
        if count > 1:
            raise ConfigurationError(
                f"the flag {flag} of noderpc start is declared {count} times; rename the"
                " setting or the page set of a feature"
            )


try:
    from . import genesis as genesis
    from . import store as store
    from .app import cli
    from .node import main

    _check_flags()
    _load_commands_of_features()
except ConfigurationError as error:
    # Report the error here, as a broken feature prevents all commands.
    Failed(str(error)).show()
    sys.exit(exit_status(error))

__all__ = ["cli", "main"]
