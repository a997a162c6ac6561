"""Tests that a form keeps how a node wrote its values, and nothing that a client could read as
other values."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.domain.responses import ResultBlock
from flask_noderpc.wire import form
from flask_noderpc.wire.comet.v038_schemas import ExecTxResult
from flask_noderpc.wire.dialect import SchemaPatch
from flask_noderpc.wire.dialects import DIALECTS
from flask_noderpc.wire.fields import Text

from .test_networks import block, digest, header, newer, stored, tx

Json = Any
DIALECT = DIALECTS["comet-0.38"]
USUAL = newer()


def shown(kind: type, reply: Json) -> bytes:
    """Return the reply to a client, after a node's reply was stored."""
    return DIALECT.encode(stored(DIALECT.decode(kind, DIALECT.envelope.json(reply))))


def plain(kind: type, reply: Json) -> bytes:
    """Return the reply in a dialect without forms."""
    behaviours = replace(DIALECT.behaviours, keeps_form=False)
    without = replace(DIALECT, behaviours=behaviours)
    return without.encode(without.decode(kind, DIALECT.envelope.json(reply)))


def with_members(**more: Json) -> Json:
    """Return results with additional members in each object, and in one that is null in the
    schemas."""
    first, *rest = USUAL["txs_results"]
    groups = {"block": USUAL["consensus_param_updates"]["block"], "validator": more}
    txs = [{**first, **more}, *rest]
    return {**newer(txs_results=txs, consensus_param_updates=groups), **more}


@pytest.mark.parametrize(
    "name", ["gasUsed", "GasUsed", "GAS_USED", "Height", "pubKeyTypes", "ga\u017fu\u017fed"]
)
def test_another_spelling_of_a_known_name_is_not_kept(name: str) -> None:
    """Go's decoders read it as the known member."""
    expected = DIALECT.envelope.json(with_members())
    assert shown(BlockResults, with_members(**{name: "8"})) == expected


def test_an_alias_in_a_block_is_not_kept() -> None:
    found = block(header={**header(), "Height": "999999", "dataHash": digest(3)})
    found["block"]["lastCommit"] = None
    assert shown(ResultBlock, found) == shown(ResultBlock, block())


def test_an_additional_member_is_kept_with_all_that_it_has() -> None:
    reply = with_members(evm_info={"gasUsed": "1", "Height": [{"Code": 1}]})
    assert shown(BlockResults, reply) == DIALECT.envelope.json(reply)


@pytest.mark.parametrize(
    ("name", "forged"),
    [("hash", digest(8).lower()), ("parts", {"total": 1, "hash": "cd" * 32})],
)
def test_a_block_id_is_that_of_the_store(name: str, forged: Json) -> None:
    """The store's block ID counts, in whichever case a node wrote another one."""
    reply = block()
    right = DIALECT.decode(ResultBlock, DIALECT.envelope.json(reply))
    reply["block_id"][name] = forged
    found = DIALECT.decode(ResultBlock, DIALECT.envelope.json(reply))
    kept = DIALECT.encode(replace(found, block_id=right.block_id))
    assert kept == DIALECT.encode(right)


def test_an_app_hash_is_that_of_the_store() -> None:
    """The unused last bits of base64 may be set."""
    node = DIALECT.decode(BlockResults, DIALECT.envelope.json(newer(app_hash="q6t=")))
    assert DIALECT.encode(replace(node, app_hash=b"right")) == DIALECT.encode(
        replace(node, app_hash=b"right", form=b"")
    )


class Shouted(Text):
    """A text field that encodes another text."""

    _encoding = "value.upper()"


class ShoutedTx(ExecTxResult):
    """A schema whose log is not the node's."""

    log = Shouted()


def test_a_form_brings_no_value_back_that_a_schema_changes() -> None:
    """The node's text differs from the dialect's own encoding."""
    schemas = SchemaPatch({ExecTxResult: ShoutedTx}).results(DIALECT.schemas)
    dialect = replace(DIALECT, schemas=schemas)
    reply = DIALECT.envelope.json(newer(txs_results=[tx(log="low")]))
    assert b'"log":"LOW"' in dialect.encode(dialect.decode(BlockResults, reply))


@pytest.mark.parametrize(
    "change",
    [
        lambda: newer(pad="x" * 20_000),
        lambda: newer(txs_results=[{**tx(), "pad": "x" * 20_000}], finalize_block_events=None),
        # Many small forms, which together are larger than the results.
        lambda: newer(txs_results=[{**tx(), "pad": "x" * 1_000} for _ in range(50)]),
    ],
)
def test_a_large_form_is_dropped(
    change: Callable[[], Json], caplog: pytest.LogCaptureFixture
) -> None:
    """The log has one line for it, and not one for each block."""
    form._log_too_large.cache_clear()
    reply = change()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert shown(BlockResults, reply) == plain(BlockResults, reply)
    assert [each.name for each in caplog.records] == ["flask_noderpc.wire"]


@pytest.mark.parametrize(
    "damaged",
    [
        b"null",
        b"[]",
        b"{}",
        b"7",
        b"[",
        b"\xff",
        b'["comet-0.38",7]',
        b'["comet-0.38",null]',
        b'["comet-0.38","value"]',
        b'["comet-0.38",{"members":7}]',
        b'["comet-0.38",{"members":{"height":7}}]',
        b'["comet-0.38",{"members":{"height":{"from":[]}}}]',
        b'["comet-0.38",{"members":{},"order":7}]',
        b'["comet-0.38",{"members":{},"order":[[]]}]',
        b'["comet-0.38",{"members":{"txs_results":{"items":[]}}}]',
        b'["comet-0.38",{"members":{"txs_results":{"items":{"x":{}}}}}]',
        b'["comet-0.38",{"members":{"txs_results":{"items":{"0":[]},"x":0}}}]',
        7,
        [1],
    ],
)
def test_a_damaged_form_is_none(damaged: Any) -> None:
    found = DIALECT.decode(BlockResults, DIALECT.envelope.json(USUAL))
    first, *rest = found.tx_results
    assert not found.form
    for other in (
        replace(found, form=damaged),
        replace(found, tx_results=(replace(first, form=damaged), *rest)),
    ):
        assert DIALECT.encode(other) == DIALECT.envelope.json(USUAL)
