"""Tests that the keys in a home decide whether its chain produces blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.domain.block import ABSENT
from flask_noderpc.errors import ChainHalted, ConfigurationError
from flask_noderpc.protocol.comet.validators import at_round

from .conftest import Open
from .fixtures import key, validator_tx, write_home, write_key


def test_every_key_of_the_home_signs(open_chain: Open, tmp_path: Path) -> None:
    write_home(tmp_path, {1: 10, 2: 10, 3: 10}, [1, 2, 3])
    chain = open_chain()
    chain.produce()

    signers = [sig.validator_address for sig in chain.reads.commit(1).signatures]

    assert signers == [v.address for v in chain.reads.validators(1).validators]
    assert chain.store.verify() == 1


def test_node_key_is_the_first_key_of_the_home(open_chain: Open, tmp_path: Path) -> None:
    write_home(tmp_path, {1: 10, 2: 10}, [2, 1])

    assert open_chain().network.validator_key() == key(2).public


def test_a_validator_without_a_key_here_is_absent_and_the_chain_goes_on(
    open_chain: Open, tmp_path: Path
) -> None:
    write_home(tmp_path, {1: 10, 2: 10, 3: 9}, [1, 2])
    chain = open_chain()

    for _ in range(6):
        chain.produce()

    position, _ = chain.reads.validators(1).by_address[key(3).address]
    commits = [chain.reads.commit(height) for height in range(1, 7)]
    assert {commit.signatures[position] for commit in commits} == {ABSENT}
    assert chain.store.verify() == 6


def test_the_round_is_that_of_the_first_proposer_with_a_local_key(
    open_chain: Open, tmp_path: Path
) -> None:
    write_home(tmp_path, {1: 10, 2: 10, 3: 9}, [1, 2])
    chain = open_chain()
    for _ in range(6):
        chain.produce()

    rounds = set()
    for height in range(1, 7):
        turn = chain.reads.commit(height).round
        members = chain.reads.validators(height)
        proposers = [at_round(members, number).proposer for number in range(turn + 1)]
        assert set(proposers[:-1]) <= {key(3).address}
        assert chain.reads.block_meta(height).header.proposer_address == proposers[-1]
        rounds.add(turn)

    assert rounds == {0, 1}


@pytest.mark.parametrize("power", [5, 6])
def test_two_thirds_or_less_halt_the_chain_with_a_clear_text(
    open_chain: Open, tmp_path: Path, power: int
) -> None:
    write_home(tmp_path, {1: 10, 2: power}, [1])
    chain = open_chain()

    with pytest.raises(
        ChainHalted, match=rf"got 10 of {10 + power}: .*priv_validator_key\*\.json"
    ):
        chain.produce()

    assert chain.reads.latest_height() == 0


def test_a_halted_chain_goes_on_when_the_key_is_added(open_chain: Open, tmp_path: Path) -> None:
    chain = open_chain()
    chain.mempool.submit(validator_tx(key(1), 100))
    for _ in range(2):
        chain.produce()
    chain.mempool.submit(b"wait=here")
    with pytest.raises(ChainHalted):
        chain.produce()
    chain.close()

    write_key(tmp_path, key(1), "priv_validator_key.second.json")
    again = open_chain()

    assert again.reads.block(again.produce())[1].txs == (b"wait=here",)
    assert again.store.verify() == 3


def test_the_median_counts_the_power_of_those_that_signed(
    open_chain: Open, tmp_path: Path, clock: ManualClock
) -> None:
    write_home(tmp_path, {1: 10, 2: 10, 3: 9}, [1, 2])
    chain = open_chain()
    chain.produce()

    chain.produce()

    assert chain.reads.block_meta(2).header.time == clock.now()


@pytest.mark.parametrize("power", [5, 6])
def test_a_start_with_two_thirds_or_less_is_refused_and_stores_nothing(
    unstarted: Open, tmp_path: Path, power: int
) -> None:
    write_home(tmp_path, {1: 10, 2: power}, [1])
    chain = unstarted(produce=True)

    with pytest.raises(ConfigurationError, match=rf"got 10 of {10 + power}.*NODERPC_PRODUCE"):
        chain.start()

    assert not chain.store.has_chain()
    write_key(tmp_path, key(2), "priv_validator_key.second.json")
    unstarted(produce=True).start()


def test_a_start_counts_the_validators_of_the_next_block(
    open_chain: Open, unstarted: Open, tmp_path: Path
) -> None:
    write_home(tmp_path, {1: 10}, [1])
    chain = open_chain()
    chain.mempool.submit(validator_tx(key(2), 10))
    for _ in range(2):
        chain.produce()
    chain.close()

    with pytest.raises(ConfigurationError, match="got 10 of 20"):
        unstarted(produce=True).start()

    assert open_chain().reads.latest_height() == 2


def test_a_chain_without_validators_is_refused(unstarted: Open, tmp_path: Path) -> None:
    write_home(tmp_path, {}, [1])
    chain = unstarted()

    with pytest.raises(ConfigurationError, match="the chain has no validators"):
        chain.start()

    assert not chain.store.has_chain()
