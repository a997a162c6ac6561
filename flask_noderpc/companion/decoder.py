"""A process that decodes blocks: ``python -m flask_noderpc.companion.decoder``.

Its argument is the file descriptor of its socket.
"""

from __future__ import annotations

import sys

from ..executors.process import serve
from ..wire.dialects import dialect_named

if __name__ == "__main__":
    serve(dialect_named, int(sys.argv[1]))
