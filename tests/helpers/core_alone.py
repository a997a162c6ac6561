"""A pytest plugin of tests/test_core_alone.py that hides features and the packages of
extras."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

# Packages of the extras, and others that tests use for comparison.
PACKAGES = {
    *("btclib_secp256k1", "eth_hash", "Crypto", "sha3", "eth", "eth_keys", "rlp", "trie"),
    *("py_arkworks_bls12381", "zksnake", "prometheus_client", "opentelemetry", "psycopg"),
    *("web3", "eth_abi", "eth_account", "quickjs"),
}


# Modules of the core that are only imported if their packages are installed.
OPTIONAL = {"flask_noderpc/web/metrics.py", "flask_noderpc/jsonrpc/tracing.py"}
# A place of a traceback.
_PLACE = re.compile(r"^(\S+\.py):\d+: in ", re.MULTILINE)


class _Missing(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in PACKAGES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


# An editable installation would find the whole package behind the copy of its core.
sys.meta_path[:] = [
    _Missing(),
    *(each for each in sys.meta_path if "editable" not in getattr(each, "__module__", "")),
]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Leave out modules of tests that import a feature, its tests, or a missing package; if the
    core itself imports one, its tests fail."""
    report = yield
    shown = str(report.longrepr)
    if isinstance(collector, pytest.Module) and "ModuleNotFoundError: " in shown:
        importing = _PLACE.findall(shown)[-1]
        if importing.startswith("tests/") or importing in OPTIONAL:
            report.outcome, report.longrepr, report.result = "passed", None, []
    return report
