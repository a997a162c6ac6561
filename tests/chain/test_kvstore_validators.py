"""Tests of validators that change by transactions, and by evidence of double votes."""

from __future__ import annotations

from pathlib import Path

import pytest

from flask_noderpc.chain import home
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.domain.block import (
    BlockID,
    DuplicateVoteEvidence,
    PartSetHeader,
    Vote,
    VoteType,
)
from flask_noderpc.domain.validator import ValidatorUpdate
from flask_noderpc.protocol.comet import validators
from flask_noderpc.protocol.comet.keys import PrivateKey

from .conftest import Open
from .fixtures import key, validator_tx, write_home


def powers(chain: EmbeddedChain, height: int) -> dict[bytes, int]:
    return {v.address: v.voting_power for v in chain.reads.validators(height).validators}


def code_of(chain: EmbeddedChain, tx: bytes) -> int:
    assert chain.mempool.submit(tx).code == 0
    return chain.reads.results(chain.produce()).tx_results[0].code


def own_key(chain: EmbeddedChain) -> PrivateKey:
    return home.load(chain.home, 0).validator_keys[0]


def test_an_update_takes_effect_two_heights_later(chain: EmbeddedChain) -> None:
    own = own_key(chain).address
    chain.mempool.submit(validator_tx(key(1), 2))

    height = chain.produce()
    for _ in range(3):
        chain.produce()

    assert powers(chain, height) == powers(chain, height + 1) == {own: 10}
    assert powers(chain, height + 2) == {own: 10, key(1).address: 2}
    headers = [chain.reads.block_meta(height + step).header for step in range(4)]
    assert headers[1].validators_hash == headers[0].validators_hash
    assert headers[1].next_validators_hash != headers[0].next_validators_hash
    assert headers[2].validators_hash == headers[1].next_validators_hash
    assert chain.store.verify() == height + 3


def test_a_newcomer_starts_with_the_priority_that_cometbft_gives(chain: EmbeddedChain) -> None:
    own = own_key(chain).address
    chain.mempool.submit(validator_tx(key(1), 1))

    height = chain.produce()
    chain.produce()

    found = {
        v.address: v.proposer_priority for v in chain.reads.validators(height + 2).validators
    }
    assert found == {own: 5, key(1).address: -5}
    later = {
        v.address: v.proposer_priority for v in chain.reads.validators(height + 3).validators
    }
    assert later == {own: 4, key(1).address: -4}


def test_a_power_changes_and_power_zero_removes(chain: EmbeddedChain) -> None:
    own = own_key(chain).address
    for power in (2, 4, 0):
        assert code_of(chain, validator_tx(key(1), power)) == 0
    chain.produce()

    history = [powers(chain, height).get(key(1).address) for height in range(1, 6)]

    assert history == [None, None, 2, 4, None]
    assert powers(chain, 6) == {own: 10}
    assert chain.store.verify() == 4


def test_removing_an_unknown_validator_fails_with_code_3_and_the_chain_continues(
    chain: EmbeddedChain,
) -> None:
    assert code_of(chain, validator_tx(key(9), 0)) == 3

    assert chain.produce() == 2
    assert len(powers(chain, 4)) == 1


def test_removing_the_last_validator_fails_with_code_3_and_the_chain_goes_on(
    chain: EmbeddedChain,
) -> None:
    assert code_of(chain, validator_tx(own_key(chain), 0)) == 3

    assert chain.produce() == 2
    assert powers(chain, 4) == {own_key(chain).address: 10}


def test_too_much_power_in_all_fails_with_code_3(chain: EmbeddedChain) -> None:
    most = validators.MAX_TOTAL_POWER

    assert code_of(chain, validator_tx(key(1), most)) == 3
    assert chain.produce() == 2


def test_several_updates_of_one_key_in_a_block_leave_the_last(chain: EmbeddedChain) -> None:
    for power in (1, 3):
        chain.mempool.submit(validator_tx(key(1), power))

    height = chain.produce()

    updates = chain.reads.results(height).validator_updates
    assert updates == (ValidatorUpdate(key(1).public, 3),)


def test_the_query_val_gives_the_update_as_protobuf(chain: EmbeddedChain) -> None:
    own = own_key(chain).public.value

    found = chain.application.query("/val", own, 0, False)

    assert found.value.hex() == "26" + "0a220a20" + own.hex() + "100a"
    assert (found.key, found.log, found.height) == (own, "", 0)


def test_the_query_val_follows_the_updates(chain: EmbeddedChain) -> None:
    code_of(chain, validator_tx(key(1), 3))
    assert chain.application.query("/val", key(1).public.value, 0, False).value.endswith(
        b"\x10\x03"
    )

    code_of(chain, validator_tx(key(1), 0))

    assert chain.application.query("/val", key(1).public.value, 0, False).value == b""


def double_vote(chain: EmbeddedChain, culprit: PrivateKey, power: int) -> DuplicateVoteEvidence:
    votes = []
    for mark in (b"\x01", b"\x02"):
        block_id = BlockID(mark * 32, PartSetHeader(1, mark * 32))
        vote = Vote(VoteType.PREVOTE, 1, 0, block_id, 1, culprit.address, 0)
        signed = culprit.sign_vote(vote, chain.reads.chain_id())
        votes.append(
            Vote(
                VoteType.PREVOTE,
                1,
                0,
                block_id,
                1,
                culprit.address,
                0,
                signature=signed.signature,
            )
        )
    return DuplicateVoteEvidence(votes[0], votes[1], power, power, 1)


@pytest.mark.parametrize(("power", "after"), [(10, 9), (1, 1)])
def test_a_double_vote_costs_one_power_but_never_the_last(
    open_chain: Open, tmp_path: Path, power: int, after: int
) -> None:
    write_home(tmp_path, {1: power, 2: 10}, [1, 2])
    chain = open_chain()
    chain.produce()

    height = chain.produce((double_vote(chain, key(1), power),))
    chain.produce()

    assert powers(chain, height + 2)[key(1).address] == after
    assert len(chain.reads.block(height)[1].evidence) == 1
    assert chain.store.verify() == 3


def test_evidence_against_an_unknown_validator_changes_nothing(chain: EmbeddedChain) -> None:
    chain.produce()

    height = chain.produce((double_vote(chain, key(9), 10),))

    assert chain.reads.results(height).validator_updates == ()
    assert chain.store.verify() == 2


def test_a_validator_that_comes_and_goes_in_one_block_changes_nothing(
    chain: EmbeddedChain,
) -> None:
    chain.mempool.submit(validator_tx(key(9), 5))
    chain.mempool.submit(validator_tx(key(9), 0))
    chain.produce()

    found = chain.reads.results(1)

    assert [result.code for result in found.tx_results] == [0, 0]
    assert found.validator_updates == ()
    assert chain.store.verify() == 1


def test_five_hundred_validator_updates_fit_one_block(chain: EmbeddedChain) -> None:
    for power in range(1, 501):
        chain.mempool.submit(validator_tx(key(9), power))
    chain.produce()

    assert [update.power for update in chain.reads.results(1).validator_updates] == [500]
