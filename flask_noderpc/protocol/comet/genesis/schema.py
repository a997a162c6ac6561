"""Tables of the members of CometBFT's genesis documents, by version, and of the Cosmos SDK's
documents.

The reader and the writer are both derived from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ....domain.genesis import BlockParams, ConsensusParams
from ....domain.validator import BLS12_381, ED25519, ML_DSA_65, SECP256K1, SECP256K1ETH
from .kinds import (
    Base64,
    Document,
    Findings,
    Hex,
    Integer,
    JsonType,
    Key,
    ListOf,
    Member,
    Object,
    Text,
    Time,
)

_INTEGER = Integer()

# Groups of consensus parameters with their own domain class.
_BLOCK = (Member("max_bytes", _INTEGER), Member("max_gas", _INTEGER))
_EVIDENCE = (
    Member("max_age_num_blocks", _INTEGER),
    Member("max_age_duration", _INTEGER),
    Member("max_bytes", _INTEGER),
)
_VALIDATOR = (Member("pub_key_types", ListOf(Text())),)
_SYNCHRONY = (Member("precision", _INTEGER), Member("message_delay", _INTEGER))
# Groups whose members are attributes of ``ConsensusParams``.
_VERSION = (Member("app", Integer(is_unsigned=True), "app_version"),)
_EXTENSIONS = Member("vote_extensions_enable_height", _INTEGER)
_AUTHORITY = (Member("authority", Text()),)
_FLAT = {"version", "abci", "feature", "authority"}


class Params(JsonType):
    """Type of the consensus parameters, an object with one object for each group such as
    ``block``."""

    zero = None
    expected = "an object"

    def __init__(self, groups: Mapping[str, tuple[Member, ...]]) -> None:
        self.groups = groups
        self._object = Object(
            *(Member(name, Object(*members)) for name, members in groups.items()),
            may_be_null=True,
        )

    def read(self, raw: bytes, path: str, findings: Findings) -> ConsensusParams | None:
        found = self._object.read(raw, path, findings)
        if found is None:
            return None
        params = ConsensusParams()
        for name, values in found.items():
            changes = values if name in _FLAT else {name: _group(params, name, values)}
            params = replace(params, **changes)
        return params

    def write(self, value: ConsensusParams) -> dict[str, Any]:
        return {
            name: Object(*members).write(value if name in _FLAT else getattr(value, name))
            for name, members in self.groups.items()
        }


def _group(params: ConsensusParams, name: str, values: dict[str, Any]) -> Any:
    return replace(getattr(params, name), **values)


@dataclass(frozen=True)
class Version:
    """Format of the genesis documents of one version of CometBFT."""

    name: str
    groups: Mapping[str, tuple[Member, ...]]
    defaults: ConsensusParams
    """Consensus parameters for a document that has none."""
    key_types: tuple[str, ...] = (ED25519, SECP256K1)

    @property
    def params(self) -> Params:
        """Type of the consensus parameters in this version."""
        return Params(self.groups)


_038 = {
    "block": _BLOCK,
    "evidence": _EVIDENCE,
    "validator": _VALIDATOR,
    "version": _VERSION,
    "abci": (_EXTENSIONS,),
}
_034 = {
    **_038,
    "block": (*_BLOCK, Member("time_iota_ms", _INTEGER)),
    "version": (Member("app_version", Integer(is_unsigned=True)),),
}
_039 = {**_038, "authority": _AUTHORITY}
_100 = {
    "block": _BLOCK,
    "evidence": _EVIDENCE,
    "validator": _VALIDATOR,
    "version": _VERSION,
    "synchrony": _SYNCHRONY,
    "feature": (_EXTENSIONS, Member("pbts_enable_height", _INTEGER)),
}
_DEFAULTS = ConsensusParams()
# CometBFT 0.40: types/params.go, including the largest commit of 10,000 validators.
_DEFAULTS_040 = replace(_DEFAULTS, block=BlockParams(22_020_096 + 33_580_094))
# CometBFT 1.0: types/params.go.
_DEFAULTS_100 = replace(_DEFAULTS, block=BlockParams(4_194_304, 10_000_000))

VERSIONS = {
    version.name: version
    for version in (
        Version(
            "0.34",
            {name: members for name, members in _034.items() if name != "abci"},
            _DEFAULTS,
        ),
        Version(
            "0.37",
            {name: members for name, members in _038.items() if name != "abci"},
            _DEFAULTS,
        ),
        Version("0.38", _038, _DEFAULTS),
        Version("0.39", _039, _DEFAULTS, (ED25519, SECP256K1, BLS12_381)),
        Version(
            "0.40",
            _039,
            _DEFAULTS_040,
            (ED25519, SECP256K1, BLS12_381, ML_DSA_65, SECP256K1ETH),
        ),
        Version("1.0", _100, _DEFAULTS_100, (ED25519, SECP256K1, BLS12_381)),
    )
}
"""CometBFT versions by name."""


VALIDATORS = ListOf(
    Object(
        Member("address", Hex()),
        Member("pub_key", Key()),
        Member("power", _INTEGER),
        Member("name", Text()),
    )
)


def comet_document(version: Version) -> Object:
    """Return the type of CometBFT's document.

    CometBFT: types/genesis.go, GenesisDoc.
    """
    return Object(
        Member("genesis_time", Time()),
        Member("chain_id", Text()),
        Member("initial_height", _INTEGER),
        Member("consensus_params", version.params),
        Member("validators", VALIDATORS, omit_empty=True),
        Member("app_hash", Hex()),
        Member("app_state", Document(), omit_empty=True),
    )


def sdk_document(version: Version) -> Object:
    """Return the type of the document of Cosmos SDK 0.50 and later.

    Cosmos SDK: x/genutil/types/genesis.go, AppGenesis.
    """
    consensus = (
        Member("validators", VALIDATORS),
        Member("params", version.params, "consensus_params"),
    )
    return Object(
        Member("app_name", Text()),
        Member("app_version", Text()),
        Member("genesis_time", Time(has_offset=True)),
        Member("chain_id", Text()),
        Member("initial_height", Integer(is_number=True)),
        Member("app_hash", Base64()),
        Member("app_state", Document()),
        Member("consensus", Object(*consensus, may_be_null=True)),
        is_folded=True,
    )
