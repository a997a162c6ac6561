"""Genesis documents: decide their form, read them, and write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .... import jsoncodec
from ....domain.genesis import ConsensusParams, Genesis
from ....domain.time import ZERO_TIME
from ....errors import ConfigurationError
from ..key_types import KEY_TYPES
from .kinds import NULL, Findings, folded, members_of
from .rules import check_head, check_params, complete_validators
from .schema import VERSIONS, Version, comet_document, sdk_document

COMETBFT, SDK = "CometBFT", "Cosmos SDK 0.50 or later"
_SHOWN_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class Reading:
    """A genesis document as it was understood."""

    genesis: Genesis
    """Values of the document; a member that is refused has an arbitrary one."""
    form: str
    """Writer of such documents: ``COMETBFT`` or ``SDK``."""
    version: Version
    findings: Findings

    @property
    def is_object(self) -> bool:
        """True if the document is a JSON object, and so has values."""
        return "" not in self.findings.problems

    @property
    def problems(self) -> list[str]:
        """Members that are refused, with the reasons."""
        return [": ".join(filter(None, each)) for each in self.findings.problems.items()]

    def check(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.ConfigurationError` if a member is refused."""
        if problems := self.problems:
            shown = "; ".join(problems[:_SHOWN_PROBLEMS])
            more = len(problems) - _SHOWN_PROBLEMS
            raise ConfigurationError(
                f"genesis document: {shown}{f'; and {more} more' if more > 0 else ''}"
            )


def read_genesis(document: bytes, now: int, dialect: str = "") -> Genesis:
    """Parse a genesis document as the CometBFT of a dialect does; ``now`` replaces a missing
    ``genesis_time``.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` that names each invalid member.
    """
    reading = read(document, now, dialect)
    reading.check()
    return reading.genesis


def read(document: bytes, now: int, dialect: str = "") -> Reading:
    """Parse a genesis document, and note what is wrong with it.

    A dialect that is not a version of CometBFT takes the version whose members the document
    has, or else 0.38.
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
    return Reading(genesis, SDK if is_sdk else COMETBFT, version, findings)


def _params_of(consensus: bytes) -> bytes:
    try:
        return members_of(consensus).get("params", NULL)
    except ValueError:
        return NULL


def _version_name(dialect: str) -> str:
    return dialect.removeprefix("comet-")


def _version(dialect: str, raw_params: bytes) -> Version:
    """Return the version of a dialect, or the one whose members a document has."""
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
    """Return true if a member is there that CometBFT 0.34 was the last to have."""
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
            "it is absent, and a genesis document whose initial_height is a number has it"
            " (Cosmos SDK 0.50); CometBFT's documents have initial_height in quotes",
        )
        consensus = {"validators": (), "consensus_params": None}
    return {**values, **consensus}


def _complete(
    values: dict[str, Any], version: Version, is_sdk: bool, now: int, findings: Findings
) -> Genesis:
    """Return the genesis with what CometBFT fills in, and note what it refuses."""
    params: ConsensusParams | None = values["consensus_params"]
    path = "consensus.params" if is_sdk else "consensus_params"
    if params is None:
        params = version.defaults
    else:
        iota = f"{path}.block.time_iota_ms"
        if iota in findings.absent:
            # CometBFT 0.34 refuses it, but this dialect also reads later versions' documents.
            params = replace(params, block=replace(params.block, time_iota_ms=1000))
        check_params(params, version, path, findings)
    check_head(values["chain_id"], values["initial_height"], findings)
    where = "consensus.validators" if is_sdk else "validators"
    app_state, time = values["app_state"], values["genesis_time"]
    return Genesis(
        chain_id=values["chain_id"],
        genesis_time=now if time == ZERO_TIME else time,
        # CometBFT: init writes 0, which means 1.
        initial_height=values["initial_height"] or 1,
        consensus_params=params,
        validators=complete_validators(values["validators"], version, where, findings),
        app_hash=values["app_hash"],
        app_state=app_state,
    )


def genesis_document(genesis: Genesis, dialect: str = "") -> bytes:
    """Encode a genesis document as the CometBFT of a dialect does, or 0.38, or the first other
    version that has all of its parameters.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if no version has them.
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
