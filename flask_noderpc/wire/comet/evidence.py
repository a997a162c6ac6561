"""Parsers of ``broadcast_evidence``'s parameter: CometBFT's JSON.

Field names differ between 0.38 and 1.0; see :func:`evidence_value`. The parameter is decoded as
by CometBFT's libs/json, with the same errors: a Go struct is a table of parsers by field name,
a missing or null field is Go's zero value, and unknown names are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from ... import jsoncodec
from ...domain import block as blocks
from ...domain.time import ZERO_TIME, from_text
from ...domain.validator import ED25519, NO_KEY, SECP256K1, PublicKey, Validator
from ...errors import InvalidEvidence
from ...protocol.comet.key_types import KEY_TYPES
from .. import json_schema as forms
from ..consensus_schemas import vote_repr
from ..dialect import ParamRules, Reader
from ..params import ParamField
from . import gojson
from .gojson import GoError
from .params import ByteSlice, HexBytes, Integer, String, refuse_hex

_NULL = b"null"

# CometBFT: types/vote_set.go, MaxVotesCount. CometBFT checks it later or not at all.
MAX_SLICE = 10_000


class Value(Protocol):
    """Parser of one value of a checked document."""

    @property
    def zero(self) -> Any:
        """Zero value of a missing or null field."""

    def from_json(self, raw: bytes, /) -> Any:
        """Decode the value; raise :exc:`GoError`."""


@dataclass(frozen=True, slots=True)
class Small:
    """Integer of at most 32 bits, without quotes."""

    go_type: str
    minimum: int = -(1 << 31)
    maximum: int = (1 << 31) - 1
    zero: int = 0

    def from_json(self, raw: bytes) -> int:
        """Parse a JSON number."""
        if gojson.kind_of(raw) != "number":
            raise gojson.mismatch(raw, self.go_type)
        return gojson.integer(raw, self.go_type, self.minimum, self.maximum)


class Time:
    """Time in UTC; a missing time is Go's zero time."""

    zero = ZERO_TIME

    def from_json(self, raw: bytes) -> int:
        """Parse an RFC 3339 time that ends with Z."""
        # CometBFT: libs/json/decoder.go, decodeReflect.
        shown = gojson.quoted(raw.decode("utf-8", "replace"))
        if len(raw) < 2 or not raw[:1] == b'"' == raw[-1:]:
            raise GoError(f"JSON time must be an RFC3339 string, but got {shown}")
        if raw[-2:-1] != b"Z":
            raise GoError(f"JSON time must be UTC and end with 'Z', but got {shown}")
        try:
            return from_text(gojson.string(raw))
        except ValueError:
            # Go's error contains the invalid part.
            raise GoError(f"parsing time {raw.decode('utf-8', 'replace')}") from None


@dataclass(frozen=True, slots=True)
class Struct:
    """Struct; ``make`` is called with the values of its fields as keywords."""

    make: Callable[..., Any]
    fields: Mapping[str, tuple[str, Value]]
    """Keyword of ``make`` and parser of each field by JSON name."""

    @property
    def zero(self) -> Any:
        """Struct with zero fields."""
        return self.make(**{keyword: value.zero for keyword, value in self.fields.values()})

    def from_json(self, raw: bytes) -> Any:
        """Parse a JSON object."""
        if gojson.kind_of(raw) != "object":
            raise gojson.mismatch(raw, "map[string]json.RawMessage")
        found = jsoncodec.decode(raw, dict[str, jsoncodec.Raw])
        return self.make(
            **{
                keyword: _value(value, bytes(found.get(name, _NULL)))
                for name, (keyword, value) in self.fields.items()
            }
        )


@dataclass(frozen=True, slots=True)
class Pointer:
    """Value that may be ``None``, Go's nil."""

    to: Value
    zero: None = None

    def from_json(self, raw: bytes) -> Any:
        """Parse the value."""
        return self.to.from_json(raw)


@dataclass(frozen=True, slots=True)
class Slice:
    """A list."""

    of: Value
    zero: tuple[()] = ()

    def from_json(self, raw: bytes) -> tuple[Any, ...]:
        """Parse a JSON array."""
        if gojson.kind_of(raw) != "array":
            raise gojson.mismatch(raw, "[]json.RawMessage")
        found = jsoncodec.decode(raw, list[jsoncodec.Raw])
        if len(found) > MAX_SLICE:
            # The length is limited, as each element takes microseconds and a body may contain
            # many.
            raise GoError(f"a list has {len(found)} elements, at most {MAX_SLICE} are read")
        return tuple(_value(self.of, bytes(element)) for element in found)


@dataclass(frozen=True, slots=True)
class Interface:
    """Value with the registered name of its type; ``None`` is Go's nil."""

    kinds: Mapping[str, Value]
    zero: None = None

    def from_json(self, raw: bytes) -> Any:
        """Parse ``{"type": NAME, "value": …}``."""
        # CometBFT: libs/json/decoder.go, decodeReflectInterface.
        if gojson.kind_of(raw) != "object":
            raise gojson.mismatch(raw, "json.interfaceWrapper")
        found = jsoncodec.decode(raw, dict[str, jsoncodec.Raw])
        name = self._name(bytes(found.get("type", _NULL)))
        if "value" not in found:
            raise GoError("interface value cannot be empty")
        if name not in self.kinds:
            raise GoError(f"unknown type {gojson.quoted(name)}")
        return _value(self.kinds[name], bytes(found["value"]))

    def _name(self, raw: bytes) -> str:
        kind = gojson.kind_of(raw)
        if kind not in ("string", "null"):
            where = "Go struct field interfaceWrapper.type of type string"
            raise GoError(f"json: cannot unmarshal {kind} into {where}")
        name = gojson.string(raw) if kind == "string" else ""
        if not name:
            raise GoError("interface type cannot be empty")
        return name


def _value(value: Value, raw: bytes) -> Any:
    return value.zero if raw == _NULL else value.from_json(raw)


_INT64, _UINT64 = Integer("int64"), Integer("uint64", minimum=0, maximum=(1 << 64) - 1)
_INT32 = Small("int32")
_UINT32 = Small("uint32", minimum=0, maximum=(1 << 32) - 1)
_HEX = HexBytes("bytes.HexBytes")
_BYTES = ByteSlice("[]uint8")
_TIME = Time()


def _invalid(text: str) -> InvalidEvidence:
    return InvalidEvidence(f"evidence.ValidateBasic failed: {text}")


@dataclass(frozen=True, slots=True)
class _Key:
    """Public key of one type."""

    kind: str
    go_type: str

    @property
    def zero(self) -> PublicKey:
        """Key without bytes."""
        return PublicKey(self.kind, b"")

    def from_json(self, raw: bytes) -> PublicKey:
        """Parse base64."""
        return PublicKey(self.kind, ByteSlice(self.go_type).from_json(raw))


_KEYS = {kind: _Key(kind, f"{known.member_name}.PubKey") for kind, known in KEY_TYPES.items()}
_KEY = Interface(
    {
        **{KEY_TYPES[kind].json_name: each for kind, each in _KEYS.items()},
        # document: the type names of keys and evidence have the document's prefix.
        "engine/PubKeyEd25519": _KEYS[ED25519],
        "engine/PubKeySecp256k1": _KEYS[SECP256K1],
    }
)

_PARTS = Struct(
    blocks.PartSetHeader,
    {"total": ("total", _UINT32), "hash": ("hash", _HEX)},
)
_BLOCK_ID = Struct(blocks.BlockID, {"hash": ("hash", _HEX), "parts": ("parts", _PARTS)})
_VOTE = Struct(
    blocks.Vote,
    {
        "type": ("type", Small("types.SignedMsgType")),
        "height": ("height", _INT64),
        "round": ("round", _INT32),
        "block_id": ("block_id", _BLOCK_ID),
        "timestamp": ("timestamp", _TIME),
        "validator_address": ("validator_address", _HEX),
        "validator_index": ("validator_index", _INT32),
        "signature": ("signature", _BYTES),
        "extension": ("extension", _BYTES),
        "extension_signature": ("extension_signature", _BYTES),
    },
)
_HEADER = Struct(
    blocks.Header,
    {
        "version": (
            "version",
            Struct(blocks.Version, {"block": ("block", _UINT64), "app": ("app", _UINT64)}),
        ),
        "chain_id": ("chain_id", String()),
        "height": ("height", _INT64),
        "time": ("time", _TIME),
        "last_block_id": ("last_block_id", _BLOCK_ID),
        **{
            name: (name, _HEX)
            for name in (
                "last_commit_hash",
                "data_hash",
                "validators_hash",
                "next_validators_hash",
                "consensus_hash",
                "app_hash",
                "last_results_hash",
                "evidence_hash",
                "proposer_address",
            )
        },
    },
)
_COMMIT_SIG = Struct(
    blocks.CommitSig,
    {
        "block_id_flag": ("block_id_flag", Small("types.BlockIDFlag", minimum=0, maximum=255)),
        "validator_address": ("validator_address", _HEX),
        "timestamp": ("timestamp", _TIME),
        "signature": ("signature", _BYTES),
    },
)
_COMMIT = Struct(
    blocks.Commit,
    {
        "height": ("height", _INT64),
        "round": ("round", _INT32),
        "block_id": ("block_id", _BLOCK_ID),
        "signatures": ("signatures", Slice(_COMMIT_SIG)),
    },
)


# All nil pointers except a validator's key are rejected with ValidateBasic's error texts.


def _validator(pub_key: PublicKey | None, **others: Any) -> Validator:
    return Validator(pub_key=pub_key or NO_KEY, **others)


_VALIDATOR = Pointer(
    Struct(
        _validator,
        {
            "address": ("address", _HEX),
            "pub_key": ("pub_key", _KEY),
            "voting_power": ("voting_power", _INT64),
            "proposer_priority": ("proposer_priority", _INT64),
        },
    )
)
_MEMBERS = Struct(
    lambda **members: members,
    {"validators": ("validators", Slice(_VALIDATOR)), "proposer": ("proposer", _VALIDATOR)},
)
_SIGNED_HEADER = Struct(
    lambda **signed: signed,
    {"header": ("header", Pointer(_HEADER)), "commit": ("commit", Pointer(_COMMIT))},
)


def _light_block(
    signed_header: dict[str, Any] | None, validator_set: dict[str, Any] | None
) -> blocks.LightBlock:
    if signed_header is None:
        raise _invalid("conflicting block missing signed header")
    if signed_header["header"] is None:
        raise _invalid("conflicting block missing header")
    within = "invalid conflicting light block: "
    if validator_set is None:
        raise _invalid(within + "missing validator set")
    if signed_header["commit"] is None:
        raise _invalid(within + "invalid signed header: missing commit")
    within += "invalid validator set: "
    if None in validator_set["validators"]:
        index = validator_set["validators"].index(None)
        raise _invalid(within + f"invalid validator #{index}: nil validator")
    if validator_set["proposer"] is None:
        raise _invalid(within + "proposer failed validate basic, error: nil validator")
    return blocks.LightBlock(blocks.SignedHeader(**signed_header), **validator_set)


_LIGHT_BLOCK = Struct(
    _light_block,
    {
        "signed_header": ("signed_header", Pointer(_SIGNED_HEADER)),
        "validator_set": ("validator_set", Pointer(_MEMBERS)),
    },
)


def _duplicate_vote(
    vote_a: blocks.Vote | None, vote_b: blocks.Vote | None, **others: int
) -> blocks.DuplicateVoteEvidence:
    if vote_a is None or vote_b is None:
        shown = f"{vote_repr(vote_a)}, {vote_repr(vote_b)}"
        raise _invalid(f"one or both of the votes are empty {shown}")
    return blocks.DuplicateVoteEvidence(vote_a, vote_b, **others)


def _attack(
    conflicting_block: blocks.LightBlock | None,
    byzantine_validators: tuple[Validator | None, ...],
    **others: int,
) -> blocks.LightClientAttackEvidence:
    if conflicting_block is None:
        raise _invalid("conflicting block is nil")
    blamed = tuple(one for one in byzantine_validators if one is not None)
    if len(blamed) < len(byzantine_validators):
        raise _invalid("nil byzantine validator")
    return blocks.LightClientAttackEvidence(
        conflicting_block, byzantine_validators=blamed, **others
    )


def evidence_value(name: Callable[[str], str]) -> Interface:
    """Return the parser of evidence; ``name`` returns the JSON name of a field whose name
    differs between versions."""

    def fields(**values: Value) -> Mapping[str, tuple[str, Value]]:
        return {name(keyword): (keyword, value) for keyword, value in values.items()}

    votes = {"vote_a": ("vote_a", Pointer(_VOTE)), "vote_b": ("vote_b", Pointer(_VOTE))}
    at = fields(total_voting_power=_INT64, timestamp=_TIME)
    duplicate = Struct(_duplicate_vote, {**votes, **fields(validator_power=_INT64), **at})
    shown = fields(
        conflicting_block=Pointer(_LIGHT_BLOCK),
        common_height=_INT64,
        byzantine_validators=Slice(_VALIDATOR),
    )
    attack = Struct(_attack, {**shown, **at})
    return Interface(
        {
            f"{prefix}/{kind}": value
            for prefix in ("tendermint", "engine")
            for kind, value in (
                ("DuplicateVoteEvidence", duplicate),
                ("LightClientAttackEvidence", attack),
            )
        }
    )


@dataclass(frozen=True, slots=True)
class EvidenceReader:
    """Parser of the evidence parameter by CometBFT's rules."""

    value: Interface
    in_uri: ClassVar = forms.EVIDENCE
    in_json: ClassVar = forms.EVIDENCE

    def from_uri(self, text: str) -> blocks.Evidence | None:
        """Parse JSON."""
        refuse_hex(text, "interface")
        return self.from_json(text.encode("utf-8", "replace"))

    def from_json(self, raw: bytes) -> blocks.Evidence | None:
        """Parse an object with type and value, or null."""
        gojson.check(raw)
        if gojson.kind_of(raw) == "null":
            return None
        found: blocks.Evidence = self.value.from_json(raw)
        return found


EVIDENCE_038 = EvidenceReader(evidence_value(lambda word: word.title().replace("_", "")))
"""CometBFT 0.34, 0.37 and 0.38: ``TotalVotingPower``."""

EVIDENCE_1 = EvidenceReader(evidence_value(str))
"""CometBFT 1.0: ``total_voting_power``."""


class EvidenceObject(ParamField):
    """Evidence parameter; its default rules are CometBFT 0.38's."""

    json_type = "object"
    in_json = in_uri = forms.EVIDENCE
    expected = "an object with the type and the value of the evidence"

    def from_json(self, value: Any) -> blocks.Evidence | None:
        """Parse CometBFT's object, with CometBFT's type names or the document's."""
        return EVIDENCE_038.from_json(jsoncodec.encode(value))

    def from_uri(self, text: str) -> blocks.Evidence | None:
        """Parse the same object from JSON text."""
        try:
            return self.from_json(jsoncodec.decode(text))
        except jsoncodec.NotJSON:
            raise self.type_error() from None


def with_evidence(rules: ParamRules, evidence: Reader) -> ParamRules:
    """Return the rules with another parser for evidence."""

    def reader(kind: ParamField) -> Reader:
        return evidence if isinstance(kind, EvidenceObject) else rules.reader(kind)

    return replace(rules, reader=reader)
