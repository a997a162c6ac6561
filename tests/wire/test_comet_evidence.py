"""Tests that evidence is read, printed, encoded and hashed as by CometBFT 0.38.25.

``evidence_0.38.25.json`` was made by its own ``types`` package: the JSON, the canonical bytes,
the hash, and the hash of a list with this one piece.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.backends.sql.packed import blocks as packed
from flask_noderpc.domain.block import DuplicateVoteEvidence, LightClientAttackEvidence
from flask_noderpc.errors import InvalidEvidence
from flask_noderpc.protocol.comet import hashes, messages
from flask_noderpc.protocol.comet.validate_basic import check_evidence_basics
from flask_noderpc.wire.comet.evidence import EVIDENCE_038, EVIDENCE_1, EvidenceObject
from flask_noderpc.wire.comet.v038_schemas import Evidence
from flask_noderpc.wire.schema import compiled
from tests.comet import rebuild

GOLDEN = json.loads((rebuild.GOLDEN / "evidence_0.38.25.json").read_text())
EVERY_PIECE = pytest.mark.parametrize("made", GOLDEN, ids=lambda made: made["name"])
VOTES, _, NOBODY, ATTACK = (made["json"] for made in GOLDEN)


def read(found: Any) -> Any:
    """Return the evidence of a JSON value."""
    return EVIDENCE_038.from_json(json.dumps(found).encode())


@EVERY_PIECE
def test_evidence_has_the_bytes_and_the_hash_of_cometbft(made: Any) -> None:
    piece = read(made["json"])

    assert messages.evidence(piece).hex() == made["bytes"]
    assert hashes.evidence_hash_of(piece).hex() == made["hash"]
    assert hashes.evidence_hash([piece]).hex() == made["list_hash"]
    check_evidence_basics(piece)


@EVERY_PIECE
def test_evidence_is_printed_as_it_was_written(made: Any) -> None:
    piece = read(made["json"])

    assert json.dumps(compiled(Evidence)(piece)) == json.dumps(made["json"])
    assert Evidence().dump(piece) == made["json"]


@EVERY_PIECE
def test_evidence_comes_out_of_a_store_as_it_went_in(made: Any) -> None:
    piece = read(made["json"])

    assert packed.unpack_evidence(packed.pack_evidence(piece, 1, 0), 1, 0) == piece


@EVERY_PIECE
def test_a_uri_takes_the_same_json(made: Any) -> None:
    text = json.dumps(made["json"])

    assert EVIDENCE_038.from_uri(text) == EvidenceObject().from_uri(text) == read(made["json"])


@EVERY_PIECE
def test_the_names_of_1_0_are_another_spelling(made: Any) -> None:
    renamed = deepcopy(made["json"])
    for old, new in {
        "ConflictingBlock": "conflicting_block",
        "CommonHeight": "common_height",
        "ByzantineValidators": "byzantine_validators",
        "TotalVotingPower": "total_voting_power",
        "ValidatorPower": "validator_power",
        "Timestamp": "timestamp",
    }.items():
        if old in renamed["value"]:
            renamed["value"][new] = renamed["value"].pop(old)

    assert EVIDENCE_1.from_json(json.dumps(renamed).encode()) == read(made["json"])


def test_the_document_s_names_of_types_are_taken_too() -> None:
    text = json.dumps(ATTACK).replace("tendermint/", "engine/")

    assert EvidenceObject().from_json(json.loads(text)) == read(ATTACK)


def test_null_is_no_evidence() -> None:
    assert EVIDENCE_038.from_json(b"null") is None


def changed(piece: Any, path: str, value: Any) -> Any:
    """Return a copy of the JSON with one member changed or removed."""
    copy = deepcopy(piece)
    *parents, last = path.split(".")
    found = copy
    for name in parents:
        found = found[int(name)] if isinstance(found, list) else found[name]
    if value is ...:
        del found[last]
    else:
        found[int(last) if isinstance(found, list) else last] = value
    return copy


NO_STRING = "expected string"
BLOCK = "value.ConflictingBlock"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ([], "json: cannot unmarshal array into Go value of type json.interfaceWrapper"),
        ({}, "interface type cannot be empty"),
        ({"type": None}, "interface type cannot be empty"),
        (
            {"type": 5},
            "json: cannot unmarshal number into Go struct field interfaceWrapper.type"
            " of type string",
        ),
        ({"type": "x"}, "interface value cannot be empty"),
        ({"type": "x", "value": {}}, 'unknown type "x"'),
        (
            changed(VOTES, "value", []),
            "json: cannot unmarshal array into Go value of type map[string]json.RawMessage",
        ),
        (
            changed(VOTES, "value.vote_a.height", 7),
            'invalid 64-bit integer encoding "7", expected string',
        ),
        (
            changed(VOTES, "value.vote_a.round", "1"),
            "json: cannot unmarshal string into Go value of type int32",
        ),
        (
            changed(VOTES, "value.vote_a.round", 1 << 31),
            "json: cannot unmarshal number 2147483648 into Go value of type int32",
        ),
        (
            changed(VOTES, "value.vote_a.validator_address", "XY"),
            "encoding/hex: invalid byte: U+0058 'X'",
        ),
        (changed(VOTES, "value.vote_a.signature", "*"), "illegal base64 data at input byte 0"),
        (
            changed(VOTES, "value.Timestamp", 5),
            'JSON time must be an RFC3339 string, but got "5"',
        ),
        (
            changed(VOTES, "value.Timestamp", "2026-11-21T17:00:00+01:00"),
            "JSON time must be UTC and end with 'Z',"
            ' but got "\\"2026-11-21T17:00:00+01:00\\""',
        ),
        (
            changed(ATTACK, f"{BLOCK}.validator_set.validators", {}),
            "json: cannot unmarshal object into Go value of type []json.RawMessage",
        ),
    ],
)
def test_malformed_evidence_gets_gos_errors(found: Any, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        read(found)


@pytest.mark.parametrize(
    "path", [BLOCK + ".validator_set.validators", BLOCK + ".signed_header.commit.signatures"]
)
@pytest.mark.parametrize("element", [None, {}])
def test_more_than_cometbft_counts_is_not_read(path: str, element: object) -> None:
    with pytest.raises(ValueError, match="a list has 10001 elements, at most 10000 are read"):
        read(changed(ATTACK, path, [element] * 10_001))


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match='parsing time "2026-13-99T00:00:00Z"'):
        read(changed(VOTES, "value.Timestamp", "2026-13-99T00:00:00Z"))


def test_a_uri_takes_no_hex() -> None:
    with pytest.raises(ValueError, match="got a hex string arg, but expected 'interface'"):
        EVIDENCE_038.from_uri("0x00")
    with pytest.raises(ValueError, match="an object with the type"):
        EvidenceObject().from_uri("0x00")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            changed(VOTES, "value", None),
            "one or both of the votes are empty nil-Vote, nil-Vote",
        ),
        (
            changed(changed(VOTES, "value.vote_b", ...), "value.vote_a.extension", "eHg="),
            "one or both of the votes are empty"
            " Vote{0:%s 7/01/SIGNED_MSG_TYPE_PREVOTE(Prevote) 010101010101 %s 787800000000"
            " @ 2026-11-21T17:00:00.123456789Z}, nil-Vote",
        ),
        (changed(ATTACK, BLOCK, ...), "conflicting block is nil"),
        (changed(ATTACK, f"{BLOCK}.signed_header", None), "conflicting block missing"),
        (changed(ATTACK, f"{BLOCK}.signed_header.header", None), "missing header"),
        (changed(ATTACK, f"{BLOCK}.signed_header.commit", None), "missing commit"),
        (changed(ATTACK, f"{BLOCK}.validator_set", None), "missing validator set"),
        (
            changed(ATTACK, f"{BLOCK}.validator_set.validators.1", None),
            "invalid validator #1: nil validator",
        ),
        (
            changed(ATTACK, f"{BLOCK}.validator_set.proposer", None),
            "proposer failed validate basic, error: nil validator",
        ),
        (changed(ATTACK, "value.ByzantineValidators.0", None), "nil byzantine validator"),
    ],
)
def test_nil_fields_get_the_errors_of_validate_basic(found: Any, text: str) -> None:
    vote = VOTES["value"]["vote_a"]
    if "%s" in text:
        signature = rebuild.text_bytes(vote["signature"])[:6].hex().upper()
        text = text % (vote["validator_address"][:12], signature)

    with pytest.raises(InvalidEvidence) as caught:
        read(found)

    assert str(caught.value).startswith("evidence.ValidateBasic failed: ")
    assert text in str(caught.value)


VOTE_A = "value.vote_a"
HEADER, COMMIT = f"{BLOCK}.signed_header.header", f"{BLOCK}.signed_header.commit"
LONG = b64encode(bytes(3310)).decode()


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (changed(VOTES, f"{VOTE_A}.type", 3), "invalid VoteA: invalid Type"),
        (changed(VOTES, "value.vote_b.type", 32), "invalid VoteB: invalid Type"),
        (
            changed(VOTES, f"{VOTE_A}.height", "0"),
            "invalid VoteA: negative or zero Height",
        ),
        (changed(VOTES, f"{VOTE_A}.round", -1), "invalid VoteA: negative Round"),
        (
            changed(VOTES, f"{VOTE_A}.block_id.hash", "AA"),
            "invalid VoteA: wrong BlockID: wrong Hash",
        ),
        (
            changed(VOTES, f"{VOTE_A}.block_id.parts.hash", "AA"),
            "invalid VoteA: wrong BlockID: wrong PartSetHeader: wrong Hash:"
            " expected size to be 32 bytes, got 1 bytes",
        ),
        (
            changed(VOTES, f"{VOTE_A}.block_id.parts.total", 0),
            f"invalid VoteA: blockID must be either empty or complete, got: {'01' * 32}:0:"
            "010101010101",
        ),
        (
            changed(VOTES, f"{VOTE_A}.validator_address", "AA"),
            "invalid VoteA: expected ValidatorAddress size to be 20 bytes, got 1 bytes",
        ),
        (
            changed(VOTES, f"{VOTE_A}.validator_index", -1),
            "invalid VoteA: negative ValidatorIndex",
        ),
        (changed(VOTES, f"{VOTE_A}.signature", None), "invalid VoteA: signature is missing"),
        (
            changed(VOTES, f"{VOTE_A}.signature", LONG),
            "invalid VoteA: signature is too big (max: 3309)",
        ),
        (
            changed(VOTES, f"{VOTE_A}.extension", "eHg="),
            "invalid VoteA: unexpected vote extension; vote type 1, isNil false",
        ),
        (
            changed(VOTES, f"{VOTE_A}.extension_signature", "eHg="),
            "invalid VoteA: unexpected vote extension signature",
        ),
        (
            changed(changed(VOTES, f"{VOTE_A}.type", 2), f"{VOTE_A}.extension", "eHg="),
            "invalid VoteA: vote extension signature absent on vote with extension",
        ),
        (
            changed(changed(VOTES, f"{VOTE_A}.type", 2), f"{VOTE_A}.extension_signature", LONG),
            "invalid VoteA: vote extension signature is too big (max: 3309)",
        ),
        (
            changed(VOTES, "value.vote_b", VOTES["value"]["vote_a"]),
            "duplicate votes in invalid order",
        ),
        (
            changed(ATTACK, "value.TotalVotingPower", "0"),
            "negative or zero total voting power",
        ),
        (changed(ATTACK, "value.CommonHeight", "0"), "negative or zero common height"),
        (
            changed(ATTACK, "value.CommonHeight", "8"),
            "common height is ahead of the conflicting block height (8 > 7)",
        ),
    ],
)
def test_inconsistent_evidence_gets_cometbfts_errors(found: Any, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        check_evidence_basics(read(found))


IN_HEADER = "invalid signed header: invalid header: "
IN_COMMIT = "invalid signed header: invalid commit: "


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (f"{HEADER}.version.block", "12", f"{IN_HEADER}block protocol is incorrect: got: 12,"),
        (f"{HEADER}.chain_id", "x" * 51, f"{IN_HEADER}chainID is too long; got: 51, max: 50"),
        (f"{HEADER}.last_block_id.hash", "AA", f"{IN_HEADER}wrong LastBlockID: wrong Hash"),
        (f"{HEADER}.data_hash", "AA", f"{IN_HEADER}wrong DataHash: expected size to be 32"),
        (f"{HEADER}.last_results_hash", "AA", f"{IN_HEADER}wrong LastResultsHash: expected"),
        (
            f"{HEADER}.proposer_address",
            "",
            f"{IN_HEADER}invalid ProposerAddress length; got: 0, expected: 20",
        ),
        (f"{HEADER}.app_hash", "AA", "invalid signed header: commit signs block "),
        (f"{COMMIT}.height", "-1", f"{IN_COMMIT}negative Height"),
        (f"{COMMIT}.round", -1, f"{IN_COMMIT}negative Round"),
        (
            f"{COMMIT}.height",
            "0",
            "invalid signed header: header and commit height mismatch: 7 vs 0",
        ),
        (f"{COMMIT}.block_id", None, f"{IN_COMMIT}commit cannot be for nil block"),
        (f"{COMMIT}.signatures", None, f"{IN_COMMIT}no signatures in commit"),
        (
            f"{COMMIT}.signatures.0.block_id_flag",
            4,
            f"{IN_COMMIT}wrong CommitSig #0: unknown BlockIDFlag: 4",
        ),
        (
            f"{COMMIT}.signatures.0.block_id_flag",
            1,
            f"{IN_COMMIT}wrong CommitSig #0: validator address is present",
        ),
        (
            f"{COMMIT}.signatures.1.timestamp",
            "2026-11-21T17:00:00Z",
            f"{IN_COMMIT}wrong CommitSig #1: time is present",
        ),
        (
            f"{COMMIT}.signatures.1.signature",
            "eHg=",
            f"{IN_COMMIT}wrong CommitSig #1: signature is present",
        ),
        (
            f"{BLOCK}.validator_set.validators",
            [],
            "invalid validator set: validator set is nil or empty",
        ),
        (
            f"{BLOCK}.validator_set.validators.0.voting_power",
            "-1",
            "invalid validator set: invalid validator #0: validator has negative voting power",
        ),
        (
            f"{BLOCK}.validator_set.validators.1.pub_key",
            None,
            "invalid validator set: invalid validator #1: validator does not have a public key",
        ),
        (
            f"{BLOCK}.validator_set.validators.0.address",
            "AA" * 20,
            "invalid validator set: invalid validator #0: validator address is incorrectly",
        ),
        (
            f"{BLOCK}.validator_set.validators.0.pub_key.value",
            "eHg=",
            "invalid validator set: invalid validator #0: expected a key of a known type",
        ),
        (
            f"{BLOCK}.validator_set.validators.0.voting_power",
            "11",
            "expected validator hash of header to match validator set hash (",
        ),
    ],
)
def test_a_conflicting_block_that_is_not_consistent_is_refused(
    path: str, value: Any, text: str
) -> None:
    expected = re.escape(f"invalid conflicting light block: {text}")
    with pytest.raises(ValueError, match=f"^{expected}"):
        check_evidence_basics(read(changed(ATTACK, path, value)))


def test_a_proposer_of_another_set_is_refused() -> None:
    members = f"{BLOCK}.validator_set"
    stranger = changed(ATTACK, f"{members}.validators", [])
    others = ATTACK["value"]["ConflictingBlock"]["validator_set"]["validators"][1:]
    stranger = changed(ATTACK, f"{members}.validators", others)

    with pytest.raises(ValueError, match="proposer not in validator set"):
        check_evidence_basics(read(stranger))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def paths(found: Any, prefix: str = "value") -> list[str]:
    """Return the paths of all members of a piece of evidence."""
    items: list[tuple[Any, Any]] = []
    if isinstance(found, dict):
        items = list(found.items())
    elif isinstance(found, list):
        items = list(enumerate(found))
    deeper = [path for name, item in items for path in paths(item, f"{prefix}.{name}")]
    return [prefix, *deeper]


PLACES = [(piece, path) for piece in (VOTES, ATTACK) for path in paths(piece["value"])]


@given(st.sampled_from(PLACES), VALUES)
def test_whatever_stands_in_evidence_is_read_or_refused(
    place: tuple[Any, str], value: Any
) -> None:
    try:
        piece = read(changed(*place, value))
        check_evidence_basics(piece)
    except (ValueError, InvalidEvidence):
        return
    assert isinstance(piece, DuplicateVoteEvidence | LightClientAttackEvidence)
    assert packed.unpack_evidence(packed.pack_evidence(piece, 1, 0), 1, 0) == piece
