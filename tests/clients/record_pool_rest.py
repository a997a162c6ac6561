"""Record the REST gateway of the Cosmos SDK for the chain of record_pool.

``python -m tests.clients.record_pool_rest PROGRAM``, after record_pool. The recording has the
form of :mod:`.record_modules_rest`.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flask_noderpc.protocol.protobuf import Message

from ..differential.http_client import Ask
from .record_modules_rest import ABSENT, record
from .record_pool import RECORDING as POOL

RECORDING = POOL.with_name("pool_rest_0.53.8.json.gz")
FUNDS, UPGRADE = "/cosmos/protocolpool/v1", "/cosmos/upgrade/v1beta1"
PARAMS, TX = "/cosmos/params/v1beta1", "/cosmos/tx/v1beta1"
JSON = (("Content-Type", "application/json"),)
BROKEN = {
    "decode": ("", "{}", '{"tx_bytes":""}', '{"tx_bytes":"!"}', '{"tx_bytes":7}'),
    "encode": (
        *("{}", '{"tx":{}}', '{"tx":null}', '{"tx":7}', '{"tx":{"body":{}}}'),
        *('{"tx":{"body":{},"auth_info":{}}}', '{"tx":{"body":7}}'),
        '{"tx":{"body":{"messages":[{}]},"auth_info":{}}}',
    ),
    "encode/amino": ("{}", '{"amino_json":"x"}', '{"amino_json":7}'),
    "decode/amino": ("{}", '{"amino_binary":""}', '{"amino_binary":"AQ=="}'),
}
# Names of the fields of requests by bytes or text.
FIELDS = {
    "TxDecode": ("decode", "tx_bytes"),
    "TxEncodeAmino": ("encode/amino", "amino_json"),
    "TxDecodeAmino": ("decode/amino", "amino_binary"),
}


def _requests(pool: dict[str, Any]) -> Iterator[Ask]:
    addresses = [each["address"] for each in pool["accounts"].values()]
    for path in (
        *(f"{FUNDS}/{each}" for each in ("community_pool", "continuous_funds", "params", "")),
        *(f"{FUNDS}/continuous_funds/{of}" for of in (*addresses, ABSENT, "nobody", "")),
        "/cosmos/distribution/v1beta1/community_pool",
        *(f"{PARAMS}/params{query}" for query in ("", "?subspace=staking", "?key=a")),
        f"{PARAMS}/params?subspace=staking&key=BondDenom",
        f"{PARAMS}/params?subspace=none&key=BondDenom",
        *(f"{UPGRADE}/{each}" for each in ("current_plan", "module_versions", "authority")),
        *(f"{UPGRADE}/applied_plan/{name}" for name in ("v2", "")),
        *(f"{UPGRADE}/upgraded_consensus_state/{height}" for height in ("7", "-1", "x", "")),
        *(f"{UPGRADE}/module_versions?module_name={name}" for name in ("bank", "none", "")),
    ):
        yield Ask(path, path=path)
    for method, bodies in BROKEN.items():
        for body in bodies:
            yield _post(f"{method} {body}", method, body)
    for query in pool["queries"]:
        name = query["path"].rpartition("/")[2]
        if name in FIELDS:
            method, field = FIELDS[name]
            given = Message(base64.b64decode(query["data"] or ""))
            is_text = field == "amino_json"
            value = given.text(1) if is_text else base64.b64encode(given.blob(1)).decode()
            yield _post(query["name"], method, json.dumps({field: value}))


def _post(name: str, method: str, body: str) -> Ask:
    return Ask(name, "POST", f"{TX}/{method}", body, JSON)


def main(program: Path) -> None:
    """Record the gateway's responses."""
    pool = json.loads(gzip.decompress(POOL.read_bytes()))
    record(program, "-record-pool", _requests(pool), RECORDING)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
