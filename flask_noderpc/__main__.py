"""The program ``noderpc``."""

from __future__ import annotations

import sys

from .server import launch


def main() -> None:
    """Run the command line; start a process of a node before the imports for reading it."""
    if sys.argv[1:2] == ["start"] and "--help" not in sys.argv:
        launch.prepare()
    try:
        from .cli import main as commands

        commands(prog_name="noderpc")
    finally:
        launch.discard()


if __name__ == "__main__":
    main()
