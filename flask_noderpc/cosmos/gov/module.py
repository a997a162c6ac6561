"""The module gov: the ends of proposals' periods, and genesis; SDK: x/gov."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType

from ..bank.balances import event
from ..bank.context import Context
from ..bank.errors import TxError
from ..bank.execute import PANICS
from ..bank.genesis_json import Item
from ..bank.genesis_values import read
from ..bank.module import Module
from ..bank.params import read_params
from ..bank.queries.request import Method
from ..protocol import coins, decimals
from ..protocol.coins import Coins, parse_integer
from ..protocol.fields import AnyValue, InvalidMessage
from ..protocol.records import encode
from ..protocol.text import compact
from .messages import HANDLERS, check_destination
from .proto import ROUTES
from .queries import LEGACY_METHODS, METHODS
from .records import (
    DEPOSIT_PERIOD,
    FAILED,
    PASSED,
    REJECTED,
    VOTING_PERIOD,
    Deposit,
    Params,
    Proposal,
    Vote,
)
from .state import ACCOUNT, ACTIVE, CONSTITUTION, INACTIVE, NEXT_ID, PARAMS, Gov, id_key
from .tally import tally
from .types import V1, V1BETA1

log = logging.getLogger(__name__)


def _drop_inactive(gov: Gov) -> None:
    """Remove the proposals whose deposits were too small for a vote."""
    for proposal in gov.due(INACTIVE):
        gov.delete(proposal.id)
        if gov.params().burn_proposal_deposit_prevote:
            gov.burn_deposits(proposal.id)
        else:
            gov.refund_deposits(proposal.id)
        gov.context.events.append(
            event(
                "inactive_proposal",
                proposal_id=str(proposal.id),
                proposal_result="proposal_dropped",
            )
        )


def _end_votes(gov: Gov) -> None:
    for proposal in gov.due(ACTIVE):
        outcome = tally(gov, proposal)
        if outcome.passes or not proposal.expedited:
            if outcome.burns:
                gov.burn_deposits(proposal.id)
            else:
                gov.refund_deposits(proposal.id)
        gov.dequeue(ACTIVE, proposal.voting_end_time or 0, proposal.id)
        if outcome.passes:
            result, text = _execute(gov.context, proposal)
        elif proposal.expedited:
            result, text = _make_regular(gov, proposal)
        else:
            proposal.status = REJECTED
            proposal.failed_reason = "proposal did not get enough votes to pass"
            result, text = "proposal_rejected", "rejected"
        proposal.final_tally_result = outcome.result
        gov.set(proposal)
        gov.context.events.append(
            event(
                "active_proposal",
                proposal_id=str(proposal.id),
                proposal_result=result,
                proposal_log=text,
            )
        )


def _make_regular(gov: Gov, proposal: Proposal) -> tuple[str, str]:
    """Continue the vote on an expedited proposal, as on a regular one; return the result and
    the log of its event."""
    proposal.expedited = False
    period = gov.params().voting_period or 0
    proposal.voting_end_time = (proposal.voting_start_time or 0) + period
    gov.enqueue(ACTIVE, proposal.voting_end_time, proposal.id)
    return "expedited_proposal_rejected", "expedited proposal converted to regular"


def _execute(context: Context, proposal: Proposal) -> tuple[str, str]:
    """Execute a proposal's messages, all or none; return the result and the log of its
    event."""
    messages = context.environment.messages
    assert messages is not None
    own = context.branched()
    for at, given in enumerate(proposal.messages):
        try:
            messages.handle(own, messages.decode(given))
            continue
        except TxError as error:
            reason = error.log
        except InvalidMessage as error:
            reason = str(error)
        except PANICS as error:
            reason = _panicked(given, str(error))
        except Exception as error:
            # If the error of a handler propagated, the producer would retry this block forever.
            log.exception("message handler of %s raised an error", given.type_url)
            reason = _panicked(given, repr(error))
        proposal.status, proposal.failed_reason = FAILED, reason
        text = f"passed, but msg {at} ({given.type_url}) failed on execution: {reason}"
        return "proposal_failed", text
    context.apply(own)
    proposal.status = PASSED
    return "proposal_passed", "passed"


def _panicked(given: AnyValue, error: str) -> str:
    shown = compact(given.type_url.removeprefix("/"), given.value)
    return f"handling x/gov proposal msg [{shown}] PANICKED: {error}"


class GovModule(Module):
    """Proposals, on which delegators vote, and which execute messages."""

    name = "gov"
    service = f"{V1}.Query"
    accounts = MappingProxyType({ACCOUNT: ("burner",)})
    handlers = HANDLERS
    queries = METHODS
    routes = ROUTES

    def methods(self) -> Mapping[str, Method]:
        legacy = {f"/{V1BETA1}.Query/{name}": each for name, each in LEGACY_METHODS.items()}
        return {**super().methods(), **legacy}

    def init_genesis(self, context: Context, state: Item) -> None:
        gov = Gov(context)
        first = state["starting_proposal_id"]
        number = first.whole_number()
        if not number:
            first.refuse("expected more than 0")
        gov.store.set(NEXT_ID, id_key(number))
        params = read_params(Params, state["params"])
        state["params"].read(lambda _: check_destination(context, params), "parameters")
        gov.store.set(PARAMS, encode(params))
        gov.store.set(CONSTITUTION, state["constitution"].text().encode())
        account = gov.account
        held = _add_deposits(gov, state)
        for each in state["votes"]:
            voter = each["voter"].read(context.codec.parse, "an address")
            for option in each["options"]:
                option["weight"].read(decimals.parse, "a decimal number")
            gov.set_vote(voter, read(Vote, each))
        for each in state["proposals"]:
            _add_proposal(gov, each)
        owned = context.balances.all_of(account)
        if owned != held:
            state.refuse(
                f"expected a balance of the account {ACCOUNT} that equals the deposits,"
                f" {coins.show(held) or 'no coins'}, got {coins.show(owned) or 'no coins'}"
            )

    def end_block(self, context: Context) -> None:
        gov = Gov(context)
        _drop_inactive(gov)
        _end_votes(gov)


def _add_deposits(gov: Gov, state: Item) -> Coins:
    held: Coins = ()
    for each in state["deposits"]:
        depositor = each["depositor"].read(gov.context.codec.parse, "an address")
        deposit = read(Deposit, each)
        gov.set_deposit(depositor, deposit)
        held = coins.add(held, tuple(deposit.amount))
    return held


def _add_proposal(gov: Gov, given: Item) -> None:
    proposal = read(Proposal, given)
    counts = given["final_tally_result"]
    for name in counts.members:
        counts[name].read(parse_integer, "an integer")
    for queue, status, name in (
        (INACTIVE, DEPOSIT_PERIOD, "deposit_end_time"),
        (ACTIVE, VOTING_PERIOD, "voting_end_time"),
    ):
        if proposal.status == status:
            time = getattr(proposal, name)
            if time is None:
                given[name].refuse("expected a time")
            gov.enqueue(queue, time, proposal.id)
    gov.set(proposal)
