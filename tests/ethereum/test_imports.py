"""What works without the extra ``evm``."""

from __future__ import annotations

import subprocess
import sys

_LOADS_NONE = """
import sys
import flask_noderpc
from flask_noderpc import NodeRPC, NODE_ROUTES, DIALECTS, SQLiteBackend, EmbeddedChain
import flask_noderpc.testing
import flask_noderpc.ethereum.aliases
libraries = {"coincurve", "eth_hash", "eth_keys", "Crypto", "rlp", "trie"}
sys.exit(", ".join(libraries & set(sys.modules)) or None)
"""


def test_the_package_loads_no_library_of_the_extra() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADS_NONE], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
