"""Tests of CometBFT's example application, in the version of 0.38."""

from __future__ import annotations

import pytest

from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.domain.abci import Event, EventAttribute
from flask_noderpc.errors import TxNotFound
from flask_noderpc.protocol.comet.hashes import tx_hash

from .fixtures import key, validator_tx

KEY = b"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="


@pytest.mark.parametrize(
    "tx",
    [
        b"a=b",
        b"a:b",
        b"name=satoshi",
        b"\xff=\x00",
        b"val=ed25519!" + KEY + b"!5",
        # Go's ParseInt accepts these.
        b"val=ed25519!" + KEY + b"!+1",
        b"val=ed25519!" + KEY + b"!00000000000000000001",
        b"val=ed25519!" + KEY + b"!-0",
    ],
)
def test_a_pair_and_a_validator_update_pass_the_check(chain: EmbeddedChain, tx: bytes) -> None:
    result = chain.application.check_tx(tx)

    assert (result.code, result.gas_wanted) == (0, 1)


@pytest.mark.parametrize(
    "tx",
    [
        b"",
        b"=",
        b":",
        b"ab",
        b"=b",
        b"a=",
        b":b",
        b"a:",
        b"a=b=c",
        b"a:b:c",
        b"a=b:c",
        b"val=x",
        b"val=ed25519!" + KEY,
        b"val=ed25519!" + KEY + b"!",
        b"val=ed25519!" + KEY + b"!-1",
        b"val=ed25519!" + KEY + b"!+",
        b"val=ed25519!" + KEY + b"!+-1",
        b"val=ed25519!" + KEY + b"! 1",
        b"val=ed25519!" + KEY + b"!1_0",
        b"val=ed25519!" + KEY + b"!1.5",
        b"val=ed25519!" + KEY + b"!1!2",
        b"val=ed25519!" + KEY + b"!1152921504606846976",
        b"val=ed25519!" + KEY + b"!" + b"9" * 40,
        b"val=ed25519!AQE=!5",
        b"val=ed25519!%%%%!5",
        b"val=secp256k1!" + KEY + b"!5",
        b"val:ed25519!" + KEY + b"!5",
    ],
)
def test_anything_else_fails_the_check_with_code_2(chain: EmbeddedChain, tx: bytes) -> None:
    result = chain.application.check_tx(tx)

    assert (result.code, result.gas_wanted) == (2, 0)


def test_a_transaction_that_fails_check_tx_is_not_pending(chain: EmbeddedChain) -> None:
    assert chain.mempool.submit(b"no pair").code == 2

    assert chain.mempool.pending_count().total == 0
    assert chain.mempool.submit(b"no pair").code == 2


@pytest.mark.parametrize(
    ("count", "app_hash"),
    [
        (0, "0000000000000000"),
        (1, "0200000000000000"),
        (2, "0400000000000000"),
        (64, "8001000000000000"),
    ],
)
def test_the_app_hash_counts_transactions(
    chain: EmbeddedChain, count: int, app_hash: str
) -> None:
    for number in range(count):
        chain.mempool.submit(b"key%d=value" % number)

    height = chain.produce()
    chain.produce()

    assert chain.reads.results(height).app_hash.hex() == app_hash
    assert chain.reads.block_meta(height).header.app_hash == bytes(8)
    assert chain.reads.block_meta(height + 1).header.app_hash.hex() == app_hash
    assert chain.application.info().data == f'{{"size":{count}}}'


def test_the_application_introduces_itself(chain: EmbeddedChain) -> None:
    chain.mempool.submit(b"a=b")
    chain.produce()

    info = chain.application.info()

    assert (info.version, info.app_version, info.last_block_height) == ("2.0.0", 1, 1)
    assert info.last_block_app_hash.hex() == "0200000000000000"
    assert chain.reads.block_meta(1).header.version.app == 1


def test_a_pair_emits_two_events(chain: EmbeddedChain) -> None:
    chain.mempool.submit(b"name=satoshi")

    result = chain.reads.results(chain.produce()).tx_results[0]

    assert result.code == result.gas_wanted == result.gas_used == 0
    assert result.events == (
        _event(b"Cosmoshi Netowoko", b"name"),
        _event(b"Cosmoshi", b"satoshi"),
    )


def test_a_validator_update_emits_itself_as_key_and_value(chain: EmbeddedChain) -> None:
    tx = validator_tx(key(1), 3)
    chain.mempool.submit(tx)

    result = chain.reads.results(chain.produce()).tx_results[0]

    assert result.events == (_event(b"Cosmoshi Netowoko", tx), _event(b"Cosmoshi", tx))


def _event(creator: bytes, name: bytes) -> Event:
    return Event(
        "app",
        (
            EventAttribute(b"creator", creator),
            EventAttribute(b"key", name),
            EventAttribute(b"index_key", b"index is working"),
            EventAttribute(b"noindex_key", b"index is working", index=False),
        ),
    )


def test_a_query_reads_committed_state_not_pending(chain: EmbeddedChain) -> None:
    chain.mempool.submit(b"name=satoshi")
    assert chain.application.query("", b"name", 0, False).log == "does not exist"

    height = chain.produce()
    found = chain.application.query("/any/path", b"name", 99, False)

    assert (found.log, found.key, found.value) == ("exists", b"name", b"satoshi")
    assert (found.code, found.index, found.height) == (0, 0, height)


def test_a_query_without_an_answer_echoes_its_key(chain: EmbeddedChain) -> None:
    found = chain.application.query("/key", b"nobody", 0, False)

    assert (found.log, found.key, found.value) == ("does not exist", b"nobody", b"")


def test_a_query_for_a_proof_gets_the_index_minus_one_and_none(chain: EmbeddedChain) -> None:
    found = chain.application.query("", b"name", 0, True)

    assert (found.index, found.proof_ops) == (-1, ())


def test_a_later_value_replaces_an_earlier_one_within_a_block(chain: EmbeddedChain) -> None:
    chain.mempool.submit(b"name=first")
    chain.mempool.submit(b"name=second")

    chain.produce()

    assert chain.application.query("", b"name", 0, False).value == b"second"


def test_a_colon_becomes_an_equal_sign_in_the_block(chain: EmbeddedChain) -> None:
    chain.mempool.submit(b"a:b")

    height = chain.produce()

    assert chain.reads.block(height)[1].txs == (b"a=b",)
    assert chain.reads.tx(tx_hash(b"a=b")).height == height
    assert chain.application.query("", b"a", 0, False).value == b"b"
    with pytest.raises(TxNotFound):
        chain.reads.tx(tx_hash(b"a:b"))


def test_the_original_of_a_rewritten_transaction_leaves_the_mempool(
    chain: EmbeddedChain,
) -> None:
    chain.mempool.submit(b"a:b")
    chain.produce()

    assert chain.mempool.pending_count().total == 0
    assert chain.reads.block(chain.produce())[1].txs == ()


def test_both_forms_of_a_pair_leave_the_mempool_together(chain: EmbeddedChain) -> None:
    chain.mempool.submit(b"a:b")
    chain.mempool.submit(b"a=b")

    height = chain.produce()

    assert chain.reads.block(height)[1].txs == (b"a=b", b"a=b")
    assert chain.mempool.pending_count().total == 0
    assert chain.reads.tx(tx_hash(b"a=b")).index == 1
