"""Genesis documents of CometBFT 0.34 to 1.0 and of the Cosmos SDK: detect which of both wrote
a document, read it, check its values by CometBFT's rules, and write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .... import jsoncodec
from ....domain.genesis import ConsensusParams, Genesis, GenesisValidator
from ....domain.time import ZERO_TIME
from ....errors import ConfigurationError
from ....settings import check_chain_id
from .. import key_types
from ..chain_state import MAX_BLOCK_BYTES
from ..key_types import KEY_TYPES
from ..validators import MAX_TOTAL_POWER
from .kinds import NULL, Findings, folded, members_of
from .schema import VERSIONS, Version, comet_document, sdk_document

COMETBFT, SDK = "CometBFT", "Cosmos SDK 0.50 or later"
_SHOWN_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class ParsedGenesis:
    """Result of reading a genesis document."""

    genesis: Genesis
    """Genesis with the document's values; the value of a rejected member is arbitrary."""
    form: str
    """Program that writes documents with these members: ``COMETBFT`` or ``SDK``."""
    version: Version
    findings: Findings

    @property
    def is_object(self) -> bool:
        """True if the document is a JSON object, so that it has values."""
        return "" not in self.findings.problems

    @property
    def problems(self) -> list[str]:
        """Texts that each contain the path of a rejected member and the reason."""
        return [": ".join(filter(None, each)) for each in self.findings.problems.items()]

    def check(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.ConfigurationError` if a member is rejected."""
        if problems := self.problems:
            shown = "; ".join(problems[:_SHOWN_PROBLEMS])
            more = len(problems) - _SHOWN_PROBLEMS
            raise ConfigurationError(
                f"genesis document: {shown}{f'; and {more} more' if more > 0 else ''}"
            )


def read_genesis(document: bytes, now: int, dialect: str = "") -> Genesis:
    """Parse a genesis document as the CometBFT version of a dialect does; ``now`` replaces a
    missing ``genesis_time``.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` that names each invalid member.
    """
    reading = read(document, now, dialect)
    reading.check()
    return reading.genesis


def read(document: bytes, now: int, dialect: str = "") -> ParsedGenesis:
    """Parse a genesis document, and record its problems.

    If the dialect is not a version of CometBFT, the document is read as the version to which
    its members belong, by default 0.38.
    """
    findings = Findings()
    try:
        members = members_of(document)
    except ValueError as error:
        members = {}
        findings.refuse("", f"expected a JSON object: {error}")
    by_name = folded(members)
    consensus = by_name.get("consensus", NULL)
    height = members.get("initial_height", NULL)
    is_sdk = consensus != NULL or height[:1] in b"-0123456789"
    raw_params = by_name.get("consensus_params", NULL)
    if is_sdk:
        raw_params = _params_of(consensus)
    version = _version(dialect, raw_params)
    if is_sdk:
        values = _sdk_values(by_name, version, findings)
    else:
        values = comet_document(version).read_members(members, "", findings)
    genesis = _complete(values, version, is_sdk, now, findings)
    return ParsedGenesis(genesis, SDK if is_sdk else COMETBFT, version, findings)


def _params_of(consensus: bytes) -> bytes:
    try:
        return members_of(consensus).get("params", NULL)
    except ValueError:
        return NULL


def _version_name(dialect: str) -> str:
    return dialect.removeprefix("comet-")


def _version(dialect: str, raw_params: bytes) -> Version:
    """Return the CometBFT version of a dialect, or else the version to which the document's
    members belong."""
    known = VERSIONS.get(_version_name(dialect))
    if known is not None:
        return known
    try:
        groups = {name for name, value in members_of(raw_params).items() if value != NULL}
    except ValueError:
        groups = set()
    name = "0.38"
    if groups & {"feature", "synchrony"}:
        name = "1.0"
    elif "authority" in groups:
        name = "0.40"
    elif _is_034(raw_params):
        name = "0.34"
    return replace(VERSIONS[name], key_types=tuple(KEY_TYPES))


def _is_034(raw_params: bytes) -> bool:
    """Return true if the document has a member that no version after CometBFT 0.34 has."""
    try:
        params = members_of(raw_params)
        return "time_iota_ms" in members_of(params.get("block", b"{}")) or (
            "app_version" in members_of(params.get("version", b"{}"))
        )
    except ValueError:
        return False


def _sdk_values(
    members: Mapping[str, bytes], version: Version, findings: Findings
) -> dict[str, Any]:
    values = sdk_document(version).read_members(members, "", findings)
    consensus = values.pop("consensus")
    if consensus is None:
        findings.refuse(
            "consensus",
            "expected an object, as the initial_height is a number (Cosmos SDK 0.50), got none;"
            " in CometBFT's documents write initial_height in quotes",
        )
        consensus = {"validators": (), "consensus_params": None}
    return {**values, **consensus}


def _complete(
    values: dict[str, Any], version: Version, is_sdk: bool, now: int, findings: Findings
) -> Genesis:
    """Return the genesis with the values that CometBFT fills in, and record the values that
    CometBFT rejects."""
    params: ConsensusParams | None = values["consensus_params"]
    path = "consensus.params" if is_sdk else "consensus_params"
    if params is None:
        params = version.defaults
    else:
        iota = f"{path}.block.time_iota_ms"
        if iota in findings.absent:
            # CometBFT 0.34 would reject a missing time_iota_ms, but its dialect also reads
            # documents of later versions, which don't have this member.
            params = replace(params, block=replace(params.block, time_iota_ms=1000))
        check_params(params, version, path, findings)
    check_head(values["chain_id"], values["initial_height"], findings)
    where = "consensus.validators" if is_sdk else "validators"
    app_state, time = values["app_state"], values["genesis_time"]
    return Genesis(
        chain_id=values["chain_id"],
        genesis_time=now if time == ZERO_TIME else time,
        # CometBFT: a height of 0, which the command init writes, means 1.
        initial_height=values["initial_height"] or 1,
        consensus_params=params,
        validators=complete_validators(values["validators"], version, where, findings),
        app_hash=values["app_hash"],
        app_state=app_state,
    )


def genesis_document(genesis: Genesis, dialect: str = "") -> bytes:
    """Encode a genesis document as the CometBFT version of a dialect does.

    If that version lacks some of the parameters, or the dialect is not a version, use the first
    of 0.38, 1.0, 0.40 and 0.34 that has all of them. Raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if no version has them all.
    """
    params, first = genesis.consensus_params, VERSIONS.get(_version_name(dialect))
    others = (VERSIONS[name] for name in ("0.38", "1.0", "0.40", "0.34"))
    for version in filter(None, (first, *others)):
        kind = version.params
        if kind.read(jsoncodec.encode(kind.write(params)), "", Findings()) == params:
            return jsoncodec.pretty(comet_document(version).write(genesis))
    raise ConfigurationError(
        "genesis document: no version of CometBFT has all of these consensus parameters:"
        f" {params}"
    )


# CometBFT 0.40: types/params.go, maxAuthorityLength.
_MAX_AUTHORITY_BYTES = 256
# CometBFT 1.0: types/params.go, MaxPrecision and MaxMessageDelay.
_MAX_PRECISION, _MAX_MESSAGE_DELAY = 30 * 10**9, 24 * 3600 * 10**9

InvalidValue = tuple[str, str, object]
"""Path of a member, its expected value, and the given value."""


def check_params(
    params: ConsensusParams, version: Version, path: str, findings: Findings
) -> None:
    """Record each parameter that CometBFT's ConsensusParams.ValidateBasic rejects."""
    for name, expected, given in _wrong_params(params, version):
        at = f"{path}.{name}"
        is_block_unknown = name == "evidence.max_bytes" and findings.has_problem(
            f"{path}.block.max_bytes"
        )
        if findings.has_problem(at) or is_block_unknown:
            continue
        reads = f"got {given}"
        if at in findings.absent:
            reads = f"got none, which CometBFT reads as {given}"
        findings.refuse(at, f"expected {expected}, {reads}")


def _wrong_params(params: ConsensusParams, version: Version) -> Iterator[InvalidValue]:
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


def _wrong_evidence(params: ConsensusParams, max_block_bytes: int) -> Iterator[InvalidValue]:
    evidence = params.evidence
    for name in ("max_age_num_blocks", "max_age_duration"):
        if getattr(evidence, name) <= 0:
            yield f"evidence.{name}", "1 or more", getattr(evidence, name)
    if not 0 <= evidence.max_bytes <= max_block_bytes:
        most = f"0 to block.max_bytes, which is {max_block_bytes}"
        yield "evidence.max_bytes", most, evidence.max_bytes


def _wrong_key_types(given: Sequence[str], version: Version) -> Iterator[InvalidValue]:
    known = ", ".join(version.key_types)
    if not given:
        yield "validator.pub_key_types", f"at least one of {known}", "none"
    for at, kind in enumerate(given):
        if kind not in version.key_types:
            yield f"validator.pub_key_types[{at}]", f"one of {known}", repr(kind[:80])


def _wrong_features(params: ConsensusParams, group: str) -> Iterator[InvalidValue]:
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
    """Record an invalid chain ID and an invalid initial height."""
    try:
        check_chain_id(chain_id)
    except ValueError as error:
        findings.refuse("chain_id", str(error))
    if initial_height < 0:
        findings.refuse("initial_height", f"expected 0 or more, got {initial_height}")


def complete_validators(
    given: Sequence[dict[str, Any]], version: Version, path: str, findings: Findings
) -> tuple[GenesisValidator, ...]:
    """Return the valid validators with their addresses, and record the problems of the
    others."""
    found: dict[bytes, GenesisValidator] = {}
    for at, values in enumerate(given):
        where = f"{path}[{at}]"
        validator = _validator(values, version, where, findings)
        if validator is None:
            continue
        if validator.address in found:
            findings.refuse(
                where,
                f"expected each key once, got the key of {_name(validator.address)} twice",
            )
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
        findings.refuse(at_key, "expected the validator's public key, got none")
        return None
    if key.type not in version.key_types:
        known = ", ".join(version.key_types)
        findings.refuse(
            at_key, f"expected a key of {known} (CometBFT {version.name}), got {key.type}"
        )
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
