"""Tests of imports and errors without the extra ``evm``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.installation import install_hint
from tests.helpers.until import PATIENCE
from tests.server.node_process import ANY_PORTS, run_start

_LOADS_NONE = """
import sys
import flask_noderpc
from flask_noderpc import DIALECTS, EmbeddedChain, COMETBFT_ROUTES, NodeRPC, SQLiteBackend
import flask_noderpc.testing
import flask_noderpc.event_aliases
chain = EmbeddedChain(sys.argv[1], produce=False)
chain.start()
chain.mempool.submit(b"a=1")
chain.produce()
chain.close()
libraries = {"btclib_secp256k1", "eth_hash", "eth_keys", "Crypto", "sha3", "rlp", "trie"}
sys.exit(", ".join(libraries & set(sys.modules)) or None)
"""


def test_nothing_without_ethereum_loads_a_library_of_the_extra(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADS_NONE, str(tmp_path / "chain.db")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")


_WITHOUT_A_HASH = """
import sys
sys.modules["eth_hash"] = None
from flask_noderpc import ChainBackend, ConfigurationError, MemoryChain
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.node import app_for
chain = make_chain(1)
try:
    backend = ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))
    app_for(backend, json_rpc_enable=True)
except ConfigurationError as error:
    print(error)
"""


def test_an_incomplete_extra_is_reported_at_start() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_A_HASH],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert install_hint("evm") in done.stdout, done.stderr


_A_DOUBLE_WITHOUT = """
import sys
sys.modules[{missing!r}] = None
try:
    import flask_noderpc.ethereum.ethermint_double
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize("missing", ["btclib_secp256k1", "eth_hash"])
def test_the_ethermint_double_names_the_missing_extra(missing: str) -> None:
    words = [sys.executable, "-c", _A_DOUBLE_WITHOUT.format(missing=missing)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.startswith(f"Ethereum needs the library {missing}"), done.stderr
    assert install_hint("evm") in done.stdout


_PRUNES_WITHOUT = """
import sys
sys.modules["eth_hash"] = None
from flask_noderpc.cli import main
main(["prune", sys.argv[1], "--retain", "2"])
"""


def test_a_chain_without_ethereum_is_pruned_without_the_extra(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    chain = EmbeddedChain(path, produce=False)
    for _ in range(3):
        chain.produce()
    chain.close()
    words = [sys.executable, "-c", _PRUNES_WITHOUT, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 blocks removed; the lowest is now 2" in done.stdout


@pytest.mark.parametrize("missing", ["btclib_secp256k1", "eth_hash", "py_arkworks_bls12381"])
def test_a_node_names_the_missing_extra_in_one_line(tmp_path: Path, missing: str) -> None:
    # Python's "site" imports this file first in each process of the node.
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules[{missing!r}] = None\n")
    paths = os.pathsep.join((str(tmp_path), *filter(None, sys.path)))
    done = run_start("--dev", "--home", str(tmp_path), *ANY_PORTS, PYTHONPATH=paths)
    # Older versions of gevent print an error of their own at the end of a process.
    line = done.stderr.splitlines()[-1]
    assert done.returncode == 78
    assert "ModuleNotFoundError" not in done.stderr
    assert line.startswith("Error: NODERPC_APPLICATION = 'evm' needs ")
    assert line.endswith(install_hint("evm"))
