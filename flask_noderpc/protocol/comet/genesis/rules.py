"""What CometBFT demands of the values of a genesis document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....domain.genesis import ConsensusParams, GenesisValidator
from ....settings import check_chain_id
from .. import key_types
from ..chain_state import MAX_BLOCK_BYTES
from ..validators import MAX_TOTAL_POWER
from .kinds import Findings
from .schema import Version

# CometBFT 0.40: types/params.go, maxAuthorityLength.
_MAX_AUTHORITY_BYTES = 256
# CometBFT 1.0: types/params.go, MaxPrecision and MaxMessageDelay.
_MAX_PRECISION, _MAX_MESSAGE_DELAY = 30 * 10**9, 24 * 3600 * 10**9

Complaint = tuple[str, str, object]
"""The path of a member, what was expected, and what was given."""


def check_params(
    params: ConsensusParams, version: Version, path: str, findings: Findings
) -> None:
    """Note each parameter that ConsensusParams.ValidateBasic refuses."""
    for name, expected, given in _wrong_params(params, version):
        at = f"{path}.{name}"
        is_block_unknown = name == "evidence.max_bytes" and findings.has_problem(
            f"{path}.block.max_bytes"
        )
        if findings.has_problem(at) or is_block_unknown:
            continue
        reads = f"got {given}"
        if at in findings.absent:
            reads = f"but it is absent, which CometBFT reads as {given}"
        findings.refuse(at, f"expected {expected}, {reads}")


def _wrong_params(params: ConsensusParams, version: Version) -> Iterator[Complaint]:
    block = params.block
    may_be_unlimited = version.name not in ("0.34", "0.37")
    is_unlimited = may_be_unlimited and block.max_bytes == -1
    if not is_unlimited and not 1 <= block.max_bytes <= MAX_BLOCK_BYTES:
        least = "-1, or 1" if may_be_unlimited else "1"
        yield "block.max_bytes", f"{least} to {MAX_BLOCK_BYTES}", block.max_bytes
    if block.max_gas < -1:
        yield "block.max_gas", "-1 or more", block.max_gas
    if block.time_iota_ms <= 0:
        yield "block.time_iota_ms", "1 or more", block.time_iota_ms
    yield from _wrong_evidence(params, MAX_BLOCK_BYTES if is_unlimited else block.max_bytes)
    yield from _wrong_key_types(params.validator.pub_key_types, version)
    if len(params.authority.encode()) > _MAX_AUTHORITY_BYTES:
        size = f"{len(params.authority.encode())} bytes"
        yield "authority.authority", f"at most {_MAX_AUTHORITY_BYTES} bytes", size
    yield from _wrong_features(params, "feature" if "feature" in version.groups else "abci")


def _wrong_evidence(params: ConsensusParams, max_block_bytes: int) -> Iterator[Complaint]:
    evidence = params.evidence
    for name in ("max_age_num_blocks", "max_age_duration"):
        if getattr(evidence, name) <= 0:
            yield f"evidence.{name}", "1 or more", getattr(evidence, name)
    if not 0 <= evidence.max_bytes <= max_block_bytes:
        most = f"0 to block.max_bytes, which is {max_block_bytes}"
        yield "evidence.max_bytes", most, evidence.max_bytes


def _wrong_key_types(given: Sequence[str], version: Version) -> Iterator[Complaint]:
    known = ", ".join(version.key_types)
    if not given:
        yield "validator.pub_key_types", f"at least one of {known}", "none"
    for at, kind in enumerate(given):
        if kind not in version.key_types:
            yield f"validator.pub_key_types[{at}]", f"one of {known}", repr(kind[:80])


def _wrong_features(params: ConsensusParams, group: str) -> Iterator[Complaint]:
    for name in ("vote_extensions_enable_height", "pbts_enable_height"):
        height = getattr(params, name)
        if height < 0:
            yield f"{group}.{name}", "0 or more", height
    if params.pbts_enable_height > 0:
        for name, most in (
            ("precision", _MAX_PRECISION),
            ("message_delay", _MAX_MESSAGE_DELAY),
        ):
            value = getattr(params.synchrony, name)
            if not 0 < value <= most:
                expected = f"1 to {most} nanoseconds, as feature.pbts_enable_height is set"
                yield f"synchrony.{name}", expected, value


def check_head(chain_id: str, initial_height: int, findings: Findings) -> None:
    """Note what is wrong with the members that all documents have."""
    try:
        check_chain_id(chain_id)
    except ValueError as error:
        findings.refuse("chain_id", str(error).replace("chain_id", "it", 1))
    if initial_height < 0:
        findings.refuse("initial_height", f"expected 0 or more, got {initial_height}")


def complete_validators(
    given: Sequence[dict[str, Any]], version: Version, path: str, findings: Findings
) -> tuple[GenesisValidator, ...]:
    """Return the validators with their addresses, and note the wrong ones."""
    found: dict[bytes, GenesisValidator] = {}
    for at, values in enumerate(given):
        where = f"{path}[{at}]"
        validator = _validator(values, version, where, findings)
        if validator is None:
            continue
        if validator.address in found:
            findings.refuse(where, f"the key of {_name(validator.address)} is there twice")
        found[validator.address] = validator
    total = sum(validator.power for validator in found.values())
    if total > MAX_TOTAL_POWER:
        findings.refuse(
            path, f"expected a total power of {MAX_TOTAL_POWER} at most, got {total}"
        )
    return tuple(found.values())


def _validator(
    values: dict[str, Any], version: Version, path: str, findings: Findings
) -> GenesisValidator | None:
    key, power = values["pub_key"], values["power"]
    if power <= 0:
        findings.refuse(f"{path}.power", f"expected 1 or more, got {power}")
    at_key = f"{path}.pub_key"
    if key is None:
        findings.refuse(at_key, "it is absent: each validator has a key")
        return None
    if key.type not in version.key_types:
        known = ", ".join(version.key_types)
        findings.refuse(at_key, f"CometBFT {version.name} knows {known} keys, not {key.type}")
        return None
    try:
        address = key_types.address(key)
    except ValueError as error:
        findings.refuse(at_key, str(error))
        return None
    if values["address"] and values["address"] != address:
        given = _name(values["address"])
        findings.refuse(
            f"{path}.address", f"expected the address of its key, {_name(address)}, got {given}"
        )
    return GenesisValidator(address, key, power, values["name"])


def _name(address: bytes) -> str:
    return address.hex().upper()[:80]
