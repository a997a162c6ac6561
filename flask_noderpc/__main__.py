"""The program ``noderpc``."""

from __future__ import annotations

import sys

from .server import launch


def main() -> None:
    """Run the command line; ``noderpc start`` first starts a process, which imports its modules
    meanwhile."""
    if sys.argv[1:2] == ["start"] and "--help" not in sys.argv:
        launch.prepare()
    try:
        from .cli import main as commands

        commands(prog_name="noderpc")
    finally:
        launch.discard()


if __name__ == "__main__":
    main()
