"""Tests of loading: the compiled loader equals marshmallow's; it returns the domain value that
was dumped, and invalid JSON is an error that names the member."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest
from marshmallow import ValidationError

from flask_noderpc.domain import abci, genesis, responses
from flask_noderpc.domain.abci import EventAttribute
from flask_noderpc.domain.genesis import (
    BlockParams,
    ConsensusParamsUpdate,
    EvidenceParams,
    ValidatorParams,
)
from flask_noderpc.domain.validator import SECP256K1, PublicKey, ValidatorUpdate
from flask_noderpc.errors import DecodeError
from flask_noderpc.wire.dialect import Dialect
from flask_noderpc.wire.dialects import DIALECTS, DOCUMENT
from flask_noderpc.wire.schema import WireSchema, compiled, compiled_load
from tests.http import chain

from .collect_answers import answers, schema_of
from .golden import ALL, Golden
from .rebuild_answers import ANSWERS
from .test_comet_golden import EVERY_EVENT, EVERY_RESULT, KINDS, of_version

EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)

NOT_DECODED = {
    responses.ResultConsensusState,
    responses.ResultDumpConsensusState,
    # Votes of consensus are shortened texts, and event data has no class to load into.
    responses.ResultEvents,
}


@EVERY_RESULT
def test_a_reply_of_a_node_is_loaded_to_its_domain_value(
    golden: Golden, route: str, result: Any
) -> None:
    answer = ANSWERS[route](of_version(golden, result))
    schema = schema_of(golden.dialect, answer)

    found = compiled_load(schema)(result)

    assert found == schema().load(result)
    if type(answer) not in NOT_DECODED:
        assert found == answer
        assert golden.dialect.load(type(answer), result) == answer
        assert compiled(schema)(found) == compiled(schema)(answer)


@EVERY_EVENT
def test_an_event_of_a_node_is_loaded_as_marshmallow_loads_it(
    golden: Golden, data: Any, keys: Any
) -> None:
    schema = golden.dialect.events[KINDS[data["type"]]]

    assert compiled_load(schema)(data["value"]) == schema().load(data["value"])


def _shown(dialect: Dialect, answer: Any) -> Any:
    """Return the part of a result that the dialect shows."""
    if isinstance(answer, responses.ResultBlock):
        return replace(answer, byzantine_validators=())
    if isinstance(answer, responses.ResultBlockSearch):
        return replace(answer, blocks=tuple(_shown(dialect, each) for each in answer.blocks))
    if isinstance(answer, abci.BlockResults):
        return _shown_results(dialect, answer)
    if isinstance(answer, responses.ResultGenesis):
        return replace(answer, genesis=_shown(dialect, answer.genesis))
    if isinstance(answer, genesis.Genesis):
        # The text is written without spaces.
        state = answer.app_state and json.dumps(json.loads(answer.app_state)).encode()
        return replace(answer, app_state=state.replace(b" ", b""))
    if dialect is DIALECTS["comet-1.0"] and isinstance(answer, responses.ResultStatus):
        version = replace(answer.node_info.protocol_version, p2p=9)
        return replace(answer, node_info=replace(answer.node_info, protocol_version=version))
    return answer


def _shown_results(dialect: Dialect, answer: abci.BlockResults) -> abci.BlockResults:
    if dialect.name in ("comet-0.34", "comet-0.37"):
        return replace(answer, app_hash=b"")
    both = answer.begin_block_events + answer.end_block_events
    return replace(answer, begin_block_events=both, end_block_events=())


def _without_times(answer: Any) -> Any:
    """Return results without the parameters of updates that CometBFT does not show."""
    update = getattr(answer, "consensus_param_updates", None)
    if update is None or update.block is None:
        return answer
    block = replace(update.block, time_iota_ms=1000)
    return replace(answer, consensus_param_updates=replace(update, block=block))


@pytest.mark.parametrize(
    "dialect",
    [dialect for dialect in DIALECTS.values() if dialect is not DOCUMENT],
    ids=lambda dialect: dialect.name,
)
def test_comet_dialects_decode_what_they_encode(
    backend: chain.PeeredBackend, dialect: Dialect
) -> None:
    decoded = set()
    for answer in answers(backend, dialect):
        if type(answer) in NOT_DECODED:
            continue
        found = dialect.decode(type(answer), dialect.encode(answer))
        assert found == _without_times(_shown(dialect, answer))
        decoded.add(type(answer))

    assert decoded == dialect.schemas.keys() - NOT_DECODED


def test_document_examples_are_decoded(backend: chain.PeeredBackend) -> None:
    decoded = set()
    for answer in answers(backend, DOCUMENT):
        document = DOCUMENT.encode(answer)
        if type(answer) in NOT_DECODED or b"DuplicateVoteEvidence" in document:
            continue
        found = DOCUMENT.decode(type(answer), document)
        assert found == schema_of(DOCUMENT, answer)().load(json.loads(document))
        assert json.loads(DOCUMENT.encode(found)) == json.loads(document)
        decoded.add(type(answer))
        if isinstance(answer, responses.ResultBlock | responses.ResultCommit):
            assert found == answer

    assert decoded >= DOCUMENT.schemas.keys() - NOT_DECODED - {responses.ResultBlockSearch}


def test_evidence_of_the_document_is_not_decoded(backend: chain.PeeredBackend) -> None:
    block_id, block = backend.reads.block(chain.WITH_EVIDENCE)
    accused = tuple(map(backend.reads.byzantine_validators, block.evidence))
    document = DOCUMENT.encode(responses.ResultBlock(block_id, block, accused))

    with pytest.raises(DecodeError, match="block: expected a block without evidence"):
        DOCUMENT.decode(responses.ResultBlock, document)


@pytest.mark.parametrize("result", sorted(NOT_DECODED, key=repr))
@EVERY_DIALECT
def test_the_state_of_consensus_is_not_decoded(dialect: Dialect, result: type) -> None:
    with pytest.raises(TypeError, match=f"encodes {result.__name__}, but can.t decode it"):
        dialect.load(result, {})


GENESIS = genesis.Genesis("chain", 0)

RESULTS = abci.BlockResults(
    3,
    (
        abci.ExecTxResult(
            5, b"d", "log", events=(abci.Event("t", (EventAttribute(b"k", b""),)),)
        ),
    ),
    validator_updates=(ValidatorUpdate(PublicKey(SECP256K1, b"k"), 0),),
    consensus_param_updates=ConsensusParamsUpdate(
        BlockParams(5, 0), EvidenceParams(0, 2, 0), ValidatorParams(()), 0
    ),
    app_hash=b"h",
)


@pytest.mark.parametrize("name", ["comet-0.38", "comet-1.0"])
def test_omitted_members_are_loaded_as_go_s_zero_values(name: str) -> None:
    dialect = DIALECTS[name]

    assert dialect.decode(abci.BlockResults, dialect.encode(RESULTS)) == RESULTS


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all members, and of the first two items of each list."""
    if isinstance(value, dict):
        below: Any = value.items()
    else:
        below = enumerate(value[:2]) if isinstance(value, list) else ()
    for key, member in below:
        yield (*path, key)
        yield from places(member, (*path, key))


_REMOVED = object()
BAD: tuple[Any, ...] = (
    None,
    5,
    "x",
    [],
    {},
    True,
    -1.5,
    "9" * 20,
    [None],
    {"x": 1},
    "0x00",
    "\u0663",
    _REMOVED,
)


def changed(value: Any, path: tuple[Any, ...], bad: Any) -> Any:
    """Return a copy with another value at a path."""
    copied = parent = deepcopy(value)
    for key in path[:-1]:
        parent = parent[key]
    if bad is _REMOVED:
        del parent[path[-1]]
    else:
        parent[path[-1]] = bad
    return copied


def loaded(schema: type[WireSchema], value: Any) -> tuple[Any, ValidationError | None]:
    """Return what marshmallow loads, or its error."""
    try:
        return schema().load(value), None
    except ValidationError as error:
        return None, error


def first_replies() -> Iterator[Any]:
    """Yield the first reply of each route, by version."""
    for golden in ALL:
        seen = {"consensus_state", "dump_consensus_state"}
        for _, route, result in golden.of_routes():
            if route not in seen:
                seen.add(route)
                yield pytest.param(golden, route, result, id=f"{golden.version} {route}")


@pytest.mark.parametrize(("golden", "route", "result"), list(first_replies()))
def test_bad_members_are_refused_by_name_where_marshmallow_refuses_them(
    golden: Golden, route: str, result: Any
) -> None:
    schema = schema_of(golden.dialect, ANSWERS[route](of_version(golden, result)))
    load, bads = compiled_load(schema), cycle(BAD)
    for path in list(places(result)):
        for bad in (next(bads), next(bads)):
            value = changed(result, path, bad)
            expected, refused = loaded(schema, value)
            if refused is None:
                assert load(value) == expected
                continue
            with pytest.raises(DecodeError) as caught:
                load(value)
            names = tuple(map(str, path))
            shorter = min(len(names), len(caught.value.path))
            assert caught.value.path[:shorter] == names[:shorter]
            assert len(str(caught.value)) < 400


@pytest.mark.parametrize("value", [None, 5, "x", [], True, {}, {"block": []}, [{}]])
@EVERY_DIALECT
def test_no_json_at_all_is_a_typed_error(dialect: Dialect, value: Any) -> None:
    # Every member of these results may be missing.
    lenient = {responses.Empty} | ({abci.ExecTxResult} if isinstance(value, dict) else set())
    for result in dialect.schemas.keys() - NOT_DECODED - lenient:
        with pytest.raises(DecodeError):
            dialect.load(result, value)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON: nested too deeply"),
        (
            b'{"last_height":"' + b"9" * 100_000 + b'","block_metas":[]}',
            "last_height: expected an integer in a string, got '9",
        ),
        (b'{"last_height":1e400,"block_metas":[]}', ""),
        (b'{"last_height":"1","block_metas":[{}]}', "block_metas.0.block_id: is missing"),
        (b'{"last_height":"1","block_metas":[null]}', "block_metas.0: is null"),
        (b'{"last_height":"1","block_metas":"x"}', "block_metas: expected a list, got 'x'"),
    ],
)
@EVERY_DIALECT
def test_bad_documents_are_typed_errors(dialect: Dialect, document: bytes, reason: str) -> None:
    with pytest.raises(DecodeError) as caught:
        dialect.decode(responses.ResultBlockchainInfo, document)

    assert str(caught.value).startswith(reason)
    assert len(str(caught.value)) < 400


def test_parsed_json_that_is_no_json_text_is_a_typed_error() -> None:
    dialect = DIALECTS["comet-0.38"]
    document = json.loads(dialect.encode(responses.ResultGenesis(GENESIS)))
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    for member, bad in (("chain_id", "\ud800"), ("app_state", deep), ("app_state", "\ud800")):
        with pytest.raises(DecodeError, match=f"^genesis.{member}: "):
            dialect.load(responses.ResultGenesis, changed(document, ("genesis", member), bad))


def test_null_lists_are_empty_as_in_go() -> None:
    dialect = DIALECTS["comet-0.38"]
    document = b'{"last_height":"0","block_metas":null}'

    assert dialect.decode(
        responses.ResultBlockchainInfo, document
    ) == responses.ResultBlockchainInfo(0, ())


def test_the_kind_of_evidence_must_be_that_of_its_value(backend: chain.PeeredBackend) -> None:
    dialect = DIALECTS["comet-0.38"]
    block_id, block = backend.reads.block(chain.WITH_EVIDENCE)
    document = dialect.encode(responses.ResultBlock(block_id, block))
    other = document.replace(b"DuplicateVoteEvidence", b"LightClientAttackEvidence")

    with pytest.raises(DecodeError, match=r"^block.evidence.evidence.0: type: expected "):
        dialect.decode(responses.ResultBlock, other)
