"""Exit status of the commands by the error that ends them; docs/start lists them."""

from __future__ import annotations

import os

from ..errors import (
    ConfigurationError,
    InvalidSetting,
    NodeRPCError,
    NotSupported,
    StoreError,
    StoreUnavailable,
    ValueNotAllowed,
)

FAILED = 1
"""A check that failed, nodes or a database that can't be reached, or a fault of the program:
the same command may succeed later."""
USAGE = 2
"""A flag, an argument or a setting with a wrong value."""
REFUSED = os.EX_CONFIG
"""Right settings that the store, the home or the machine refuses: the same command will fail
again."""
INTERRUPTED = 130
"""Ended by Ctrl-C, as shells report it: 128 and the number of SIGINT."""


class WorkerFailed(NodeRPCError):
    """A process of the node can't start; ``status`` is that of its own error."""

    def __init__(self, text: str, status: int) -> None:
        self.status = status
        super().__init__(text)


def exit_status(error: NodeRPCError) -> int:
    """Return the exit status of a command that an error ends."""
    match error:
        case WorkerFailed():
            return error.status
        case InvalidSetting() | ValueNotAllowed():
            return USAGE
        case StoreUnavailable():
            return FAILED
        case ConfigurationError() | StoreError() | NotSupported():
            return REFUSED
        case _:
            return FAILED
