"""Tests of the double of an Ethermint chain."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from flask_noderpc.backends.base.application import Application, AppState, BlockLimits
from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.domain.abci import Event, ExecTxResult
from flask_noderpc.domain.genesis import ConsensusParams
from flask_noderpc.ethereum.ethermint_double import (
    FUNDS,
    EmittedLog,
    EthermintDouble,
    failing_contract,
    log_calldata,
    log_contract,
)
from flask_noderpc.ethereum.protocol.blocks import ethereum_block
from flask_noderpc.ethereum.protocol.ethermint import Layout
from flask_noderpc.ethereum.protocol.execution import created_address
from flask_noderpc.testing.chains import ChainMaker, DictState

from .cosmos_txs import cosmos_evm_message, ethermint_message, wrapped
from .signing import OTHER, TO, sample, sender, transfer
from .test_execution import TOPIC, call, emitting


class _Chain:
    """A chain of the double, and the double for queries."""

    def __init__(self, make: Callable[[AppState], Application] = EthermintDouble) -> None:
        self.app: EthermintDouble | None = None

        def remember(state: AppState) -> Application:
            app = make(state)
            assert isinstance(app, EthermintDouble)
            self.app = app
            return app

        self.maker = ChainMaker(application=remember)

    @property
    def double(self) -> EthermintDouble:
        assert self.app
        return self.app

    def block(self, *txs: bytes) -> tuple[ExecTxResult, ...]:
        return self.maker.block(*txs).results.tx_results


def _attributes(event: Event) -> dict[str, str]:
    return {a.key.decode(): a.value.decode() for a in event.attributes}


def test_value_moves_and_gas_is_paid() -> None:
    chain = _Chain()
    (result,) = chain.block(transfer(0))
    assert (result.code, result.gas_used) == (0, 21_000)
    payer = chain.double.account(sender())
    assert (payer.nonce, payer.balance) == (1, FUNDS - 7 - 21_000 * 2 * 10**9)
    assert chain.double.account(bytes.fromhex(TO[2:])).balance == FUNDS + 7
    assert chain.double.info().last_block_height == 1


def test_both_layouts_are_those_of_ethermint() -> None:
    tx = emitting(0, EmittedLog((TOPIC,)))
    (split,) = _Chain().block(tx)
    (single,) = _Chain(partial(EthermintDouble, layout=Layout.SINGLE)).block(tx)
    kinds = ["ethereum_tx", "tx_log", "message"]
    assert [e.type for e in single.events] == kinds
    assert [e.type for e in split.events] == ["ethereum_tx", *kinds]
    assert len(split.events[0].attributes) == 2
    assert split.events[1:] == single.events
    received = _attributes(single.events[0])
    assert received["recipient"].lower() == "0x" + log_contract().hex()
    assert received["sender"] == _attributes(single.events[2])["sender"]
    assert "ethereumTxFailed" not in received


def test_indices_in_events_count_over_the_block() -> None:
    chain = _Chain()
    tx = wrapped(ethermint_message(transfer(1)), cosmos_evm_message(transfer(2)))
    results = chain.block(transfer(0), tx, transfer(0, OTHER))
    indices = [
        _attributes(e)["txIndex"]
        for result in results
        for e in result.events
        if e.type == "ethereum_tx" and len(e.attributes) > 2
    ]
    assert indices == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("tx", "error"),
    [
        (call(0, failing_contract()), "execution reverted"),
        (call(0, log_contract()), "execution reverted"),
        (call(0, log_contract(), b"no logs"), "execution reverted"),
        (call(0, log_contract(), log_calldata(EmittedLog((b"short",)))), "execution reverted"),
        (call(0, log_contract(), log_calldata(EmittedLog((TOPIC,) * 5))), "execution reverted"),
        (call(0, log_contract(), log_calldata(EmittedLog()), gas=21_100), "out of gas"),
    ],
)
def test_a_failing_call_pays_and_moves_nothing(tx: bytes, error: str) -> None:
    chain = _Chain()
    (result,) = chain.block(tx)
    assert result.code == 0
    assert _attributes(result.events[1])["ethereumTxFailed"] == error
    assert chain.double.account(sender()).nonce == 1


def test_a_creation_takes_an_address_and_its_value() -> None:
    chain = _Chain()
    nonces = [transfer(nonce) for nonce in range(3)]
    results = chain.block(*nonces, sample("creation"))
    assert results[3].code == 0
    assert "recipient" not in _attributes(results[3].events[1])
    created = created_address(sender(), 3)
    assert chain.double.account(created).balance == FUNDS + 7


@pytest.mark.parametrize(
    ("tx", "code", "log"),
    [
        (b"key=value", 2, "expected at least one Ethereum transaction"),
        (transfer(0), 32, "nonce too low"),
        (transfer(5), 32, "nonce too high"),
        (transfer(1, value=FUNDS), 5, "insufficient funds for gas * price + value"),
        (transfer(1, gas=20_000), 11, "intrinsic gas too low"),
        (wrapped(cosmos_evm_message(transfer(1)), cosmos_evm_message(transfer(1))), 32, ""),
    ],
)
def test_a_refused_transaction_changes_no_state(tx: bytes, code: int, log: str) -> None:
    chain = _Chain()
    chain.block(transfer(0))
    (result,) = chain.block(tx)
    assert result.code == code
    assert log in result.log
    assert result.events == ()
    assert chain.double.account(sender()).nonce == 1


def test_a_check_lets_later_nonces_wait() -> None:
    chain = _Chain()
    chain.block(transfer(0))
    double = chain.double
    assert double.check_tx(transfer(9)).code == 0
    assert double.check_tx(transfer(0)).log == "nonce too low"
    assert double.check_tx(b"key=value").code == 2
    assert double.check_tx(transfer(1, gas=20_000)).code == 11


def test_a_proposal_orders_transactions_of_a_sender_by_nonce() -> None:
    double = EthermintDouble(DictState())
    txs = [transfer(2), transfer(0), transfer(1, OTHER), b"key=value", transfer(1)]
    assert double.prepare_proposal(txs, BlockLimits(-1, -1)) == (
        transfer(0),
        transfer(1),
        transfer(2),
    )


def test_without_a_base_fee_there_is_no_fee_market() -> None:
    chain = _Chain(partial(EthermintDouble, base_fee=None))
    made = chain.maker.block(transfer(0))
    assert made.results.begin_block_events == ()
    params = chain.maker.genesis.consensus_params
    block = ethereum_block(b"\1" * 32, made.block.header, made.block.txs, made.results, params)
    assert block.header.base_fee is None
    assert block.receipts[0].effective_gas_price == 10**9


def test_an_embedded_chain_of_it_survives_a_restart(tmp_path: Path) -> None:
    def opened() -> EmbeddedChain:
        return EmbeddedChain(
            tmp_path / "chain.db",
            application=EthermintDouble,
            clock=ManualClock(),
            produce=False,
        )

    with closing(opened()) as chain:
        chain.start()
        for tx in (transfer(1), transfer(0)):
            chain.mempool.submit(tx)
        chain.produce()
        _, block = chain.reads.block(1)
        assert block.txs == (transfer(0), transfer(1))
    with closing(opened()) as chain:
        chain.start()
        chain.mempool.submit(emitting(2, EmittedLog((TOPIC,))))
        chain.produce()
        block_id, block = chain.reads.block(2)
        made = ethereum_block(
            block_id.hash, block.header, block.txs, chain.reads.results(2), ConsensusParams()
        )
    assert [log.topics for receipt in made.receipts for log in receipt.logs] == [(TOPIC,)]
