"""Decode blocks in a process: ``python -m flask_noderpc.companion.decoder``.

The argument is the file descriptor of the process's socket.
"""

from __future__ import annotations

import sys

from ..executors.process import serve
from ..wire.dialects import dialect_named

if __name__ == "__main__":
    serve(dialect_named, int(sys.argv[1]))
