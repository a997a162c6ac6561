"""Store of x/gov, in the SDK's layout; SDK: x/gov/keeper.

Reads and writes have the SDK's order, as they cost gas.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from ..bank.balances import Balances
from ..bank.context import Context
from ..bank.errors import INTERNAL, Panic, TxError
from ..protocol import coins
from ..protocol.coins import Coins
from ..protocol.records import decode, encode
from ..staking.state import sized, time_key
from .records import VOTING_PERIOD, Deposit, Params, Proposal, Vote

ACCOUNT = "gov"
"""Name of the account that holds the deposits, and signs the messages of proposals."""

STORE = b"gov/"
"""Prefix of the module's keys."""

PROPOSALS, ACTIVE, INACTIVE, NEXT_ID, _IN_VOTING_PERIOD = (
    bytes((number,)) for number in range(5)
)
DEPOSITS, VOTES, PARAMS, CONSTITUTION = b"\x10", b"\x20", b"\x30", b"\x31"

# This is above the number of any proposal.
_HIGHEST = b"\xff" * 9

log = logging.getLogger(__name__)


def id_key(number: int) -> bytes:
    """Return the key of a proposal."""
    return number.to_bytes(8)


def _queue_key(queue: bytes, time: int, number: int) -> bytes:
    return queue + time_key(time) + id_key(number)


class Gov:
    """Proposals, deposits and votes in the state of a context."""

    def __init__(self, context: Context) -> None:
        self.context, self.store = context, context.store(STORE)

    @property
    def now(self) -> int:
        """Time of the block."""
        return self.context.environment.time

    @property
    def account(self) -> bytes:
        """Address of the module's account; reading it costs gas."""
        return self.context.accounts.module(ACCOUNT)

    def params(self) -> Params:
        """Return the parameters."""
        return decode(Params, self.store.get(PARAMS) or b"")

    def next_id(self) -> int:
        """Return the number of the next proposal, and increment it."""
        stored = self.store.get(NEXT_ID)
        number = 0 if stored is None else int.from_bytes(stored)
        self.store.set(NEXT_ID, id_key(number + 1))
        return number

    # Proposals

    def find(self, number: int) -> Proposal | None:
        """Return a proposal, or ``None``."""
        stored = self.store.get(PROPOSALS + id_key(number))
        return None if stored is None else decode(Proposal, stored)

    def proposal(self, number: int) -> Proposal:
        """Return a proposal; raise :exc:`TxError` if it does not exist."""
        found = self.find(number)
        if found is None:
            raise missing(str(number), "Proposal")
        return found

    def set(self, proposal: Proposal) -> None:
        """Store a proposal."""
        key = id_key(proposal.id)
        if proposal.status == VOTING_PERIOD:
            self.store.set(_IN_VOTING_PERIOD + key, b"\1")
        else:
            self.store.delete(_IN_VOTING_PERIOD + key)
        self.store.set(PROPOSALS + key, encode(proposal))

    def delete(self, number: int) -> None:
        """Remove a proposal."""
        proposal = self.proposal(number)
        if proposal.deposit_end_time is not None:
            self.dequeue(INACTIVE, proposal.deposit_end_time, number)
        if proposal.voting_end_time is not None:
            self.dequeue(ACTIVE, proposal.voting_end_time, number)
            self.store.delete(_IN_VOTING_PERIOD + id_key(number))
        self.store.delete(PROPOSALS + id_key(number))

    def is_in_voting_period(self, number: int) -> bool:
        """Return true if accounts can vote on a proposal."""
        return self.store.has(_IN_VOTING_PERIOD + id_key(number))

    def begin_voting(self, proposal: Proposal) -> None:
        """Begin the voting period of a proposal."""
        params = self.params()
        period = params.expedited_voting_period if proposal.expedited else params.voting_period
        begun = replace(
            proposal,
            status=VOTING_PERIOD,
            voting_start_time=self.now,
            voting_end_time=self.now + (period or 0),
        )
        self.set(begun)
        self.dequeue(INACTIVE, proposal.deposit_end_time or 0, proposal.id)
        self.enqueue(ACTIVE, begun.voting_end_time or 0, proposal.id)

    def enqueue(self, queue: bytes, time: int, number: int) -> None:
        """Add a proposal to a queue; it is due at a time."""
        self.store.set(_queue_key(queue, time, number), id_key(number))

    def dequeue(self, queue: bytes, time: int, number: int) -> None:
        """Remove a proposal from a queue."""
        self.store.delete(_queue_key(queue, time, number))

    def due(self, queue: bytes) -> Iterator[Proposal]:
        """Yield the proposals of a queue whose time has come; each is read after the caller has
        handled the ones before it."""
        before = queue + time_key(self.now) + _HIGHEST
        for key in [key for key, _ in self.store.iterate(queue, before=before)]:
            found = self.find(int.from_bytes(key[-8:]))
            # SDK: the chain halts if a message of a proposal has canceled a later one.
            if found is not None:
                yield found

    # Votes

    def set_vote(self, voter: bytes, vote: Vote) -> None:
        """Store the vote of an account."""
        self.store.set(VOTES + id_key(vote.proposal_id) + sized(voter), encode(vote))

    def votes(self, number: int) -> Iterator[tuple[bytes, Vote]]:
        """Yield the votes on a proposal, and their keys."""
        for key, stored in self.store.iterate(VOTES + id_key(number)):
            yield key, decode(Vote, stored)

    def delete_votes(self, number: int) -> None:
        """Remove all votes on a proposal."""
        for key, _ in list(self.votes(number)):
            self.store.delete(key)

    # Deposits

    def find_deposit(self, number: int, depositor: bytes) -> Deposit | None:
        """Return the deposit of an account, or ``None``."""
        stored = self.store.get(DEPOSITS + id_key(number) + sized(depositor))
        return None if stored is None else decode(Deposit, stored)

    def set_deposit(self, depositor: bytes, deposit: Deposit) -> None:
        """Store the deposit of an account."""
        key = DEPOSITS + id_key(deposit.proposal_id) + sized(depositor)
        self.store.set(key, encode(deposit))

    def deposits(self, number: int) -> Iterator[tuple[bytes, Deposit]]:
        """Yield the deposits of a proposal, and their keys."""
        for key, stored in self.store.iterate(DEPOSITS + id_key(number)):
            yield key, decode(Deposit, stored)

    def refund_deposits(self, number: int) -> None:
        """Return the deposits of a proposal to their owners."""
        for key, deposit in self.deposits(number):
            owner, amount = key[len(DEPOSITS) + 9 :], tuple(deposit.amount)
            self._spend(number, partial(_refund, owner=owner, amount=amount))
            self.store.delete(key)

    def burn_deposits(self, number: int) -> None:
        """Destroy the deposits of a proposal."""
        total: Coins = ()
        for key, deposit in self.deposits(number):
            total = coins.add(total, tuple(deposit.amount))
            self.store.delete(key)
        self._spend(number, lambda balances: balances.burn(ACCOUNT, total))

    def _spend(self, number: int, spend: Callable[[Balances], None]) -> None:
        """Spend coins of the module's account, or nothing if it has too few.

        An accepted proposal can send away the deposits of others; the SDK's chain halts when
        they are due.
        """
        own = self.context.branched()
        try:
            spend(own.balances)
        except (TxError, Panic) as error:
            log.warning("gov: the deposits of proposal %d are lost: %s", number, error)
            return
        self.context.apply(own)


def _refund(balances: Balances, owner: bytes, amount: Coins) -> None:
    balances.send_from_module(ACCOUNT, owner, amount)


def missing(key: str, kind: str) -> TxError:
    """Return the error for a value that does not exist."""
    text = f"key '{key}' of type github.com/cosmos/gogoproto/cosmos.gov.v1.{kind}"
    return TxError(INTERNAL, f"collections: not found: {text}")
