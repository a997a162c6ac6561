"""EVM: runs messages on a state that is stored by roots and hashes."""

from __future__ import annotations

import os
from importlib.util import find_spec

# py-evm hashes with eth_hash.auto, which prefers the slower of the two libraries.
if find_spec("sha3"):
    os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")
