"""Run the scenario against a real node of each version, and print where ours, a companion of
that node, and a companion of a net of real validators differ.

``python -m tests.differential 0.38.25=/path/to/cometbft …`` prints the differences, and with
``--record`` writes the real nodes' responses into tests/golden, for the short form.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from pathlib import Path

from . import companion, network, run
from .sides import VERSIONS


def main() -> None:
    """Compare, print, and fail if a difference has no explanation."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("nodes", nargs="+", metavar="VERSION=BINARY")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--all", action="store_true", help="also the explained differences")
    given = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    unexplained = 0
    for node in given.nodes:
        name, _, binary = node.partition("=")
        with tempfile.TemporaryDirectory() as scratch:
            unexplained += run.compare(
                VERSIONS[name],
                Path(binary),
                Path(scratch),
                record=given.record,
                everything=given.all,
            )
            for compare in (companion.compare, network.compare):
                unexplained += compare(VERSIONS[name], Path(binary), Path(scratch))
    raise SystemExit(min(unexplained, 1))


if __name__ == "__main__":
    main()
