"""Record vesting accounts of the Cosmos SDK.

``python -m tests.clients.record_vesting PROGRAM``; ``go build`` in tests/clients/sdk makes the
program, and its record_vesting.go defines the recorded chain. It has the modules of
:mod:`.record_grants`, and vesting in addition. The recording has the same form, and ``rest``:
responses of the REST gateway after the last block, as in :mod:`.record_modules_rest`.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from ..differential.http_client import Ask
from .record_modules import RECORDING as MODULES
from .record_modules_rest import asked, gateway

RECORDING = MODULES.with_name("vesting_0.53.8.json.gz")
AUTH, BANK = "/cosmos/auth/v1beta1", "/cosmos/bank/v1beta1"


def main(program: Path) -> None:
    """Write what the program prints, and the responses of its gateway."""
    with TemporaryFile() as printed, gateway(program, "-record-vesting", printed) as url:
        printed.seek(0)
        recorded = json.loads(printed.read())
        recorded["rest"] = [asked(url, request) for request in _requests(recorded)]
    text = json.dumps(recorded, indent=1, ensure_ascii=False).encode()
    RECORDING.write_bytes(gzip.compress(text, mtime=0))
    print(f"{len(text)} bytes, {RECORDING.stat().st_size} compressed")


def _requests(recorded: dict[str, Any]) -> Iterator[Ask]:
    accounts = recorded["accounts"]
    for name in sorted(accounts):
        address = accounts[name]["address"]
        for path in (
            f"{AUTH}/accounts/{address}",
            f"{AUTH}/account_info/{address}",
            f"{BANK}/spendable_balances/{address}",
            f"{BANK}/spendable_balances/{address}/by_denom?denom=stake",
        ):
            yield Ask(path, path=path)
        for path in (
            f"{BANK}/spendable_balances/{address}",
            f"{BANK}/spendable_balances/{address}/by_denom?denom=stake",
        ):
            yield Ask(f"{path} at 20", path=path, headers=(("x-cosmos-block-height", "20"),))
    path = f"{AUTH}/accounts?pagination.limit=1000"
    yield Ask(path, path=path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
