"""Record the REST gateway of the Cosmos SDK for the chain of record_modules.

``python -m tests.clients.record_modules_rest PROGRAM`` runs the program of record_modules,
which serves the gateway after the last block, and asks it for each path of staking,
distribution, mint, slashing and evidence. The recording is gzipped JSON, a list of ``{name,
method, path, body, headers, status, type, reply}``; ``type`` is the Content-Type, and ``reply``
is the body of the response.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from ..differential.http_client import Ask, ask
from ..helpers.ports import free_port
from ..helpers.until import until
from .record_modules import RECORDING as MODULES

RECORDING = MODULES.with_name("modules_rest_0.53.8.json.gz")
STAKING, DISTRIBUTION = "/cosmos/staking/v1beta1", "/cosmos/distribution/v1beta1"
MINT, SLASHING = "/cosmos/mint/v1beta1", "/cosmos/slashing/v1beta1"
EVIDENCE, SIMULATE = "/cosmos/evidence/v1beta1/evidence", "/cosmos/tx/v1beta1/simulate"
ABSENT = "cosmos1ttfcxp94xhpfslday3jhcxs3hzzfsnlk8kvv7y"
ABSENT_VALIDATOR = "cosmosvaloper1ttfcxp94xhpfslday3jhcxs3hzzfsnlkzzcejh"
PAGES = (
    "pagination.limit=1",
    "pagination.limit=2&pagination.count_total=true",
    "pagination.offset=1&pagination.limit=1",
    "pagination.offset=100",
    "pagination.reverse=true&pagination.limit=1",
    "pagination.key=!",
    "pagination.limit=x",
    "pagination.limit=-1",
    "pagination.key=c3Rha2U%3D&pagination.offset=1",
    "pagination.none=1",
    "none=1",
)

# Go's JSON library adds a space after commas or not, depending on the build of the program. The
# recording always has it, like the recording for the bank.
_SEPARATOR = re.compile(r'(\d|"),"(message|details)":')


def main(program: Path) -> None:
    """Record the gateway's responses."""
    modules = json.loads(gzip.decompress(MODULES.read_bytes()))
    record(program, "-record-modules", _requests(modules), RECORDING)


def record(program: Path, flag: str, requests: Iterator[Ask], recording: Path) -> None:
    """Start the gateway of the chain that a flag records, and record its responses."""
    with gateway(program, flag) as url:
        found = [reply for request in requests for reply in _followed(url, request)]
    text = json.dumps(found, indent=1, ensure_ascii=False).encode()
    recording.write_bytes(gzip.compress(text, mtime=0))
    print(f"{len(found)} requests, {recording.stat().st_size} bytes")


@contextmanager
def gateway(program: Path, flag: str, out: IO[bytes] | None = None) -> Iterator[str]:
    """Return the URL of the REST gateway of a chain that the program records; ``out`` receives
    the recording."""
    api, grpc = free_port(), free_port()
    command = [
        *(str(program), flag, "-api", f"tcp://127.0.0.1:{api}"),
        *("-grpc", f"127.0.0.1:{grpc}"),
    ]
    with subprocess.Popen(command, stdout=out or subprocess.DEVNULL) as process:
        try:
            url = f"http://127.0.0.1:{api}"
            until(lambda: _is_up(url), "the gateway")
            yield url
        finally:
            process.terminate()


def _is_up(url: str) -> bool:
    try:
        return ask(url, Ask("up", path=f"{STAKING}/params")).status == 200
    except OSError:
        return False


def _followed(url: str, request: Ask) -> Iterator[dict[str, Any]]:
    """Yield the response, and that for the page after it."""
    found = asked(url, request)
    yield found
    if request.path.endswith("pagination.limit=1") and found["status"] == 200:
        key = json.loads(found["reply"]).get("pagination", {}).get("next_key")
        if key and "offset" not in request.path and "reverse" not in request.path:
            path = f"{request.path}&pagination.key={quote(key, safe='')}"
            yield asked(url, Ask(path, path=path))


def asked(url: str, request: Ask) -> dict[str, Any]:
    """Return a request and its response as the recording has them."""
    reply = ask(url, request)
    return {
        "name": request.name,
        "method": request.method,
        "path": request.path,
        "body": request.body,
        "headers": dict(request.headers),
        "status": reply.status,
        "type": reply.headers.get("Content-Type", ""),
        "reply": _SEPARATOR.sub(r'\1, "\2":', reply.body)
        if reply.status >= 400
        else reply.body,
    }


def _requests(modules: dict[str, Any]) -> Iterator[Ask]:
    names = sorted(modules["accounts"])
    accounts = [modules["accounts"][name]["address"] for name in names]
    operators = [modules["validators"][name]["operator"] for name in names]
    last = modules["blocks"][-1]["height"]
    for path in (
        *_validators(operators, accounts[0], last),
        *_delegators(accounts, operators, last),
        *_rewards(accounts, operators, last),
        *_slashing(modules, last),
    ):
        yield Ask(path, path=path)
    for height in ("1", "100", str(last), str(last + 1), "0", "-1", "x"):
        for path in (
            f"{STAKING}/pool",
            f"{STAKING}/validators/{operators[1]}",
            f"{DISTRIBUTION}/community_pool",
            f"{MINT}/inflation",
        ):
            header = ("x-cosmos-block-height", height)
            yield Ask(f"{path} at {height}", path=path, headers=(header,))
    yield from _posts(modules)


def _paged(path: str) -> Iterator[str]:
    yield path
    yield from (f"{path}?{page}" for page in PAGES)


def _validators(operators: list[str], account: str, last: int) -> Iterator[str]:
    yield from _paged(f"{STAKING}/validators")
    for status in (
        *("BOND_STATUS_BONDED", "BOND_STATUS_UNBONDING", "BOND_STATUS_UNBONDED"),
        *("BOND_STATUS_UNSPECIFIED", "bonded", "3", ""),
    ):
        yield f"{STAKING}/validators?status={status}"
    yield f"{STAKING}/validators?status=BOND_STATUS_BONDED&pagination.limit=1"
    for of in (*operators, ABSENT_VALIDATOR, account, "nobody", ""):
        yield f"{STAKING}/validators/{of}"
        yield f"{STAKING}/validators/{of}/delegations"
        yield f"{STAKING}/validators/{of}/unbonding_delegations"
    for part in ("delegations", "unbonding_delegations"):
        yield from _paged(f"{STAKING}/validators/{operators[1]}/{part}")
    for height in (1, 100, last, last + 1, 0, -1, "x", ""):
        yield f"{STAKING}/historical_info/{height}"
    for path in ("pool", "params", "none", ""):
        yield f"{STAKING}/{path}"


def _delegators(accounts: list[str], operators: list[str], last: int) -> Iterator[str]:
    heidi = accounts[7]
    for of in (*accounts, ABSENT, operators[0], "nobody", ""):
        yield f"{STAKING}/delegations/{of}"
        for part in ("unbonding_delegations", "redelegations", "validators"):
            yield f"{STAKING}/delegators/{of}/{part}"
        yield from _delegation(of, operators[1])
    for of in (*operators, ABSENT_VALIDATOR, heidi, "nobody"):
        yield from _delegation(heidi, of)
        for query in (f"src_validator_addr={of}", f"dst_validator_addr={of}"):
            yield f"{STAKING}/delegators/{heidi}/redelegations?{query}"
        query = f"src_validator_addr={operators[7]}&dst_validator_addr={of}"
        yield f"{STAKING}/delegators/{heidi}/redelegations?{query}"
    yield from _paged(f"{STAKING}/delegations/{heidi}")
    for part in ("unbonding_delegations", "redelegations", "validators"):
        yield from _paged(f"{STAKING}/delegators/{heidi}/{part}")


def _delegation(delegator: str, validator: str) -> Iterator[str]:
    yield f"{STAKING}/validators/{validator}/delegations/{delegator}"
    yield f"{STAKING}/validators/{validator}/delegations/{delegator}/unbonding_delegation"
    yield f"{STAKING}/delegators/{delegator}/validators/{validator}"
    yield f"{DISTRIBUTION}/delegators/{delegator}/rewards/{validator}"


def _rewards(accounts: list[str], operators: list[str], last: int) -> Iterator[str]:
    for of in (*accounts, ABSENT, operators[0], "nobody", ""):
        for part in ("rewards", "validators", "withdraw_address", "none"):
            yield f"{DISTRIBUTION}/delegators/{of}/{part}"
    for of in (*operators, ABSENT_VALIDATOR, accounts[0], "nobody", ""):
        yield f"{DISTRIBUTION}/validators/{of}"
        for part in ("outstanding_rewards", "commission", "slashes"):
            yield f"{DISTRIBUTION}/validators/{of}/{part}"
        yield f"{DISTRIBUTION}/validators/{of}/slashes?ending_height={last}"
    slashes = f"{DISTRIBUTION}/validators/{operators[2]}/slashes"
    for query in (
        f"starting_height=100&ending_height={last}",
        "starting_height=9&ending_height=8",
        "ending_height=x",
        "ending_height=-1",
        *(f"ending_height={last}&{page}" for page in PAGES),
    ):
        yield f"{slashes}?{query}"
    for path in ("params", "community_pool", "none", ""):
        yield f"{DISTRIBUTION}/{path}"
    for path in ("params", "inflation", "annual_provisions", "none", ""):
        yield f"{MINT}/{path}"


def _slashing(modules: dict[str, Any], last: int) -> Iterator[str]:
    exported = modules["states"][str(last)]["export"]["slashing"]["signing_infos"]
    for of in (
        *(each["address"] for each in exported),
        "cosmosvalcons1j962l6l8ueajq7x6075kxg9n8497cqzel0aqy2",
        ABSENT_VALIDATOR,
        "nobody",
    ):
        yield f"{SLASHING}/signing_infos/{of}"
    yield from _paged(f"{SLASHING}/signing_infos")
    for path in ("params", "signing_infos/", "none", ""):
        yield f"{SLASHING}/{path}"
    yield from _paged(EVIDENCE)
    for of in (*_evidence_hashes(modules), "00", "x", ""):
        yield f"{EVIDENCE}/{of}"


def _evidence_hashes(modules: dict[str, Any]) -> Iterator[str]:
    for query in modules["queries"]:
        if query["path"].endswith("Query/Evidence") and query.get("request", {}).get("hash"):
            yield quote(query["request"]["hash"])


def _posts(modules: dict[str, Any]) -> Iterator[Ask]:
    json_type = (("Content-Type", "application/json"),)
    for query in modules["queries"]:
        if query["name"].startswith("simulate "):
            # The request has one field of bytes, whose length takes one or two bytes.
            data = base64.b64decode(query["data"])
            raw = base64.b64encode(data[2 if data[1] < 128 else 3 :]).decode()
            body = json.dumps({"tx_bytes": raw})
            yield Ask(query["name"], "POST", SIMULATE, body, json_type)
    yield Ask("POST to a path of GET", "POST", f"{STAKING}/pool", "{}", json_type)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
