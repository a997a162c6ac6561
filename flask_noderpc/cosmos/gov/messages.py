"""Messages of x/gov; SDK: x/gov/keeper/msg_server.go."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ... import jsoncodec
from ...protocol.protobuf import integer
from ..bank.accounts import module_address
from ..bank.balances import event
from ..bank.context import Context
from ..bank.errors import (
    INTERNAL,
    INVALID_COINS,
    INVALID_REQUEST,
    INVALID_SIGNER,
    Panic,
    TxError,
)
from ..bank.messages import Handler, check_amount, of_governance, parse_address
from ..distribution.state import ACCOUNT as DISTRIBUTION
from ..distribution.state import Distribution
from ..protocol import coins, decimals
from ..protocol.coins import Coin, Coins
from ..protocol.fields import AnyValue, Values
from ..protocol.messages import Msg
from ..protocol.proto import ENUMS, MESSAGES
from ..protocol.records import encode
from ..protocol.text import compact
from . import types
from .errors import (
    DEPOSIT_TOO_SMALL,
    INACTIVE_PROPOSAL,
    INVALID_CONTENT,
    INVALID_DEPOSIT_DENOM,
    INVALID_PROPOSAL,
    INVALID_PROPOSAL_TYPE,
    INVALID_PROPOSER,
    INVALID_VOTE,
    METADATA_TOO_LONG,
    NO_CONTENT_HANDLER,
    NO_MESSAGES,
    SUMMARY_TOO_LONG,
    VOTING_ENDED,
)
from .records import (
    DEPOSIT_PERIOD,
    VOTING_PERIOD,
    YES,
    Deposit,
    Params,
    Proposal,
    TallyResult,
    Vote,
    WeightedOption,
    covers,
    decimal,
    scaled,
)
from .state import ACCOUNT, INACTIVE, PARAMS, Gov
from .types import CONTENTS

_MOST_METADATA = 255
_MOST_SUMMARY = 40 * _MOST_METADATA
# Gas for each byte of a new proposal.
_GAS_PER_BYTE = 3 * 30
_NIL = "runtime error: invalid memory address or nil pointer dereference"


# Proposals


def _submit(context: Context, given: Values) -> bytes:
    for name in ("title", "summary"):
        if not given[name]:
            raise TxError(INVALID_REQUEST, f"proposal {name} cannot be empty")
    proposer = parse_address(context.codec, "proposer", given["proposer"])
    if not given["messages"] and not given["metadata"]:
        raise TxError(NO_MESSAGES, "either metadata or Msgs length must be non-nil")
    _check_metadata(given)
    gov = Gov(context)
    params, deposit = gov.params(), given["initial_deposit"]
    _check_initial_deposit(params, deposit, is_expedited=given["expedited"])
    _check_denoms(params, deposit)
    proposal = _new_proposal(gov, given, proposer)
    size = len(encode(proposal))
    context.meter.consume(_GAS_PER_BYTE * size, "submit proposal")
    if _deposit(gov, proposal.id, proposer, deposit):
        started = str(proposal.id)
        context.events.append(event("submit_proposal", voting_period_start=started))
    return integer(1, proposal.id)


def _check_metadata(given: Values) -> None:
    """Raise :exc:`TxError` if metadata in the SDK's form has another title or summary."""
    found = _read_metadata(given["metadata"]) if given["metadata"] else None
    if found is None:
        return
    for name in ("title", "summary"):
        own = found.get(name) or ""
        if own != given[name]:
            raise TxError(
                INVALID_CONTENT,
                f"metadata {name} '{own}' must equal proposal {name} '{given[name]}'",
            )


_TEXTS = ("title", "summary", "details", "proposal_forum_url", "vote_option_context")


def _read_metadata(text: str) -> dict[str, Any] | None:
    """Return the members of metadata; ``None`` if Go would not read it into the SDK's type."""
    # Python's decoder crashes at deep nesting if a library has raised the recursion limit, and
    # the length of metadata is only checked later.
    if jsoncodec.is_deep(text):
        return None
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    if found is not None and not isinstance(found, dict):
        return None
    members = {name.lower(): value for name, value in (found or {}).items()}
    if any(not isinstance(members.get(name), str | None) for name in _TEXTS):
        return None
    authors = members.get("authors")
    if not isinstance(authors, list | None):
        return None
    if any(not isinstance(each, str | None) for each in authors or ()):
        return None
    return members


def _refuse_constant(text: str) -> float:
    """Raise :exc:`ValueError` for a name such as ``NaN``, which is not JSON."""
    raise ValueError(text)


def _check_initial_deposit(params: Params, deposit: Coins, *, is_expedited: bool) -> None:
    if not coins.is_valid(deposit):
        raise TxError(INVALID_COINS, coins.show(deposit))
    ratio = decimal(params.min_initial_deposit_ratio)
    if not ratio:
        return
    least = params.expedited_min_deposit if is_expedited else params.min_deposit
    needed = scaled(least, ratio, decimals.round_int)
    if not covers(deposit, needed):
        text = f"was ({coins.show(deposit)}), need ({coins.show(needed)})"
        raise TxError(DEPOSIT_TOO_SMALL, text)


def _check_denoms(params: Params, deposit: Coins) -> None:
    accepted = [coin.denom for coin in params.min_deposit]
    if any(coin.denom not in accepted for coin in deposit):
        raise TxError(
            INVALID_DEPOSIT_DENOM,
            f"deposited {coins.show(deposit)}, but gov accepts only the following denom(s):"
            f" [{' '.join(accepted)}]",
        )


def _check_length(text: str) -> None:
    if (size := len(text.encode())) > _MOST_METADATA:
        raise TxError(METADATA_TOO_LONG, f"got metadata with length {size}")


def _new_proposal(gov: Gov, given: Values, proposer: bytes) -> Proposal:
    context = gov.context
    _check_length(given["metadata"])
    if (size := len(given["summary"].encode())) > _MOST_SUMMARY:
        raise TxError(SUMMARY_TOO_LONG, f"got summary with length {size}")
    _check_length(given["title"])
    for each in given["messages"]:
        _check_message(gov, each)
    number, params = gov.next_id(), gov.params()
    proposal = Proposal(
        number,
        list(given["messages"]),
        DEPOSIT_PERIOD,
        TallyResult(),
        submit_time=gov.now,
        deposit_end_time=gov.now + (params.max_deposit_period or 0),
        metadata=given["metadata"],
        title=given["title"],
        summary=given["summary"],
        proposer=context.codec.show(proposer),
        expedited=given["expedited"],
    )
    gov.set(proposal)
    gov.enqueue(INACTIVE, proposal.deposit_end_time or 0, number)
    context.events.append(
        event(
            "submit_proposal",
            proposal_id=str(number),
            proposal_proposer=proposal.proposer,
            proposal_messages="".join(f",{each.type_url}" for each in given["messages"]),
        )
    )
    return proposal


def _check_message(gov: Gov, given: AnyValue) -> None:
    """Raise :exc:`TxError` unless only the module's account signs a message of a proposal."""
    context, messages = gov.context, gov.context.environment.messages
    assert messages is not None
    message = messages.decode(given)
    signers = tuple(dict.fromkeys(context.environment.signers(message)))
    if len(signers) != 1:
        raise TxError(INVALID_SIGNER)
    if signers[0] != gov.account:
        raise TxError(INVALID_SIGNER, context.codec.show(signers[0]))
    if message.type is types.MSG_EXEC_CONTENT:
        _try_content(context, message)


def _try_content(context: Context, message: Msg) -> None:
    try:
        _execute_content(context.branched(), message.values)
    except TxError as error:
        if error.code is NO_CONTENT_HANDLER:
            raise
        raise TxError(INVALID_CONTENT, error.log) from None


def _execute_content(context: Context, given: Values) -> None:
    expected = context.codec.show(Gov(context).account)
    if given["authority"] != expected:
        raise TxError(INVALID_SIGNER, f"expected {expected} got {given['authority']}")
    content: AnyValue | None = given["content"]
    if content is None:
        raise Panic(_NIL)
    # Text has no effect; the SDK has no handlers of the other contents.
    if (route := CONTENTS[content.type_url].route) != ACCOUNT:
        raise TxError(NO_CONTENT_HANDLER, route)


def _legacy_submit(context: Context, given: Values) -> bytes:
    content: AnyValue | None = given["content"]
    if content is None:
        raise Panic(_NIL)
    kind = CONTENTS[content.type_url]
    if content.type_url != types.TEXT_PROPOSAL:
        raise TxError(INVALID_PROPOSAL_TYPE, kind.type)
    values = kind.kind.decode(content.value)
    types.check_content(values)
    authority = context.codec.show(module_address(ACCOUNT))
    value = MESSAGES.encode(
        types.MSG_EXEC_CONTENT.type_url[1:],
        content={"type_url": content.type_url, "value": content.value},
        authority=authority,
    )
    inner = {
        "messages": (AnyValue(types.MSG_EXEC_CONTENT.type_url, value),),
        "title": values["title"],
        "summary": values["description"],
        "metadata": "",
        "expedited": False,
    }
    return _submit(context, {**given, **inner})


def _cancel(context: Context, given: Values) -> bytes:
    parse_address(context.codec, "proposer", given["proposer"])
    gov, number = Gov(context), given["proposal_id"]
    proposal = gov.proposal(number)
    if not proposal.proposer:
        text = f"proposal {number} doesn't have proposer {given['proposer']}"
        raise TxError(INVALID_PROPOSAL, f"{text}, so cannot be canceled")
    if proposal.proposer != given["proposer"]:
        raise TxError(INVALID_PROPOSER, f"invalid proposer {given['proposer']}")
    if proposal.status not in (DEPOSIT_PERIOD, VOTING_PERIOD):
        text = "proposal should be in the deposit or voting period"
        raise TxError(INVALID_PROPOSAL, text)
    if proposal.voting_end_time is not None and proposal.voting_end_time < gov.now:
        text = f"voting period is already ended for this proposal {number}"
        raise TxError(VOTING_ENDED, text)
    _charge_deposits(gov, number, gov.params())
    if proposal.voting_start_time is not None:
        gov.delete_votes(number)
    gov.delete(number)
    sender = given["proposer"]
    context.events.append(event("cancel_proposal", sender=sender, proposal_id=str(number)))
    return MESSAGES.encode(
        f"{types.V1}.MsgCancelProposalResponse",
        proposal_id=number,
        canceled_time=gov.now,
        canceled_height=context.environment.height,
    )


def _charge_deposits(gov: Gov, number: int, params: Params) -> None:
    """Return the deposits of a canceled proposal, except a part of them."""
    balances, parse = gov.context.balances, gov.context.codec.parse
    ratio = decimal(params.proposal_cancel_ratio)
    charged: Coins = ()
    for key, deposit in list(gov.deposits(number)):
        part = scaled(deposit.amount, ratio, decimals.truncate)
        negative = tuple(Coin(coin.denom, -coin.value) for coin in part)
        returned = coins.add(tuple(deposit.amount), negative)
        charged = coins.add(charged, part)
        if returned:
            balances.send_from_module(ACCOUNT, parse(deposit.depositor), returned)
        gov.store.delete(key)
    if not charged:
        return
    to = params.proposal_cancel_dest
    if not to:
        balances.burn(ACCOUNT, charged)
    elif to == gov.context.codec.show(module_address(DISTRIBUTION)):
        own = module_address(ACCOUNT)
        Distribution(gov.context).fund_community_pool(own, charged)
    else:
        balances.send_from_module(ACCOUNT, parse(to), charged)


# Deposits


def _handle_deposit(context: Context, given: Values) -> None:
    depositor, amount = (
        parse_address(context.codec, "depositor", given["depositor"]),
        given["amount"],
    )
    check_amount(amount)
    if _deposit(Gov(context), given["proposal_id"], depositor, amount):
        started = str(given["proposal_id"])
        context.events.append(event("proposal_deposit", voting_period_start=started))


def _deposit(gov: Gov, number: int, depositor: bytes, amount: Coins) -> bool:
    """Add a deposit; return true if the proposal's voting period begins."""
    proposal = gov.proposal(number)
    if proposal.status not in (DEPOSIT_PERIOD, VOTING_PERIOD):
        raise TxError(INACTIVE_PROPOSAL, str(number))
    params = gov.params()
    needed = proposal.min_deposit(params)
    ratio = decimal(params.min_deposit_ratio)
    _check_denoms(params, amount)
    if ratio:
        _check_amount(amount, scaled(needed, ratio, decimals.truncate))
    gov.context.balances.send_to_module(depositor, ACCOUNT, amount)
    proposal.total_deposit = coins.add(tuple(proposal.total_deposit), amount)
    gov.set(proposal)
    begins = proposal.status == DEPOSIT_PERIOD and covers(proposal.total_deposit, needed)
    if begins:
        gov.begin_voting(proposal)
    shown, before = gov.context.codec.show(depositor), gov.find_deposit(number, depositor)
    total = coins.add(tuple(before.amount), amount) if before else amount
    gov.context.events.append(
        event(
            "proposal_deposit",
            depositor=shown,
            amount=coins.show(amount),
            proposal_id=str(number),
        )
    )
    gov.set_deposit(depositor, Deposit(number, shown, total))
    return begins


def _check_amount(amount: Coins, least: Sequence[Coin]) -> None:
    amounts = {coin.denom: coin.value for coin in amount}
    for coin in least:
        # The parameters may have a negative ratio, as the SDK does not check it.
        if coin.value < 0:
            raise Panic(f"negative coin amount: {coin.value}")
        if amounts.get(coin.denom, -1) >= coin.value:
            return
    shown = coins.show(amount)
    text = f"received {shown} but need at least one of the following: {coins.show(least)}"
    raise TxError(DEPOSIT_TOO_SMALL, text)


# Votes


def _vote(context: Context, given: Values) -> None:
    voter = parse_address(context.codec, "voter", given["voter"])
    if not _is_option(given["option"]):
        shown = ENUMS["VoteOption"].get(given["option"], str(given["option"]))
        raise TxError(INVALID_VOTE, shown)
    options = [WeightedOption(given["option"], decimals.show(decimals.ONE))]
    _add_vote(context, given, voter, options)


def _is_option(option: int) -> bool:
    return YES <= option <= max(ENUMS["VoteOption"])


def _vote_weighted(context: Context, given: Values) -> None:
    voter = parse_address(context.codec, "voter", given["voter"])
    options = [WeightedOption(**each) for each in given["options"]]
    if not options:
        raise TxError(INVALID_REQUEST, "null")
    total, used = 0, set()
    for each in options:
        weight = _weight(each)
        total += weight
        if each.option in used:
            raise TxError(INVALID_VOTE, "duplicated vote option")
        used.add(each.option)
    if total > decimals.ONE:
        raise TxError(INVALID_VOTE, "total weight overflow 1.00")
    if total < decimals.ONE:
        raise TxError(INVALID_VOTE, "total weight lower than 1.00")
    _add_vote(context, given, voter, options)


def _weight(option: WeightedOption) -> int:
    """Return the weight of an option; raise :exc:`TxError` if one of them is invalid."""
    try:
        found = decimals.parse(option.weight)
    except ValueError:
        found = 0
    if not (0 < found <= decimals.ONE and _is_option(option.option)):
        raise TxError(INVALID_VOTE, compact("WeightedVoteOption", encode(option)))
    return found


def _add_vote(
    context: Context, given: Values, voter: bytes, options: list[WeightedOption]
) -> None:
    gov, number, metadata = Gov(context), given["proposal_id"], given.get("metadata", "")
    if not gov.is_in_voting_period(number):
        raise TxError(INACTIVE_PROPOSAL, str(number))
    _check_length(metadata)
    shown = context.codec.show(voter)
    gov.set_vote(voter, Vote(number, shown, options, metadata))
    listed = [{"option": each.option, "weight": each.weight} for each in options]
    context.events.append(
        event(
            "proposal_vote",
            voter=shown,
            option=jsoncodec.encode(listed).decode(),
            proposal_id=str(number),
        )
    )


def _legacy_vote_weighted(context: Context, given: Values) -> None:
    options = tuple(
        {**each, "weight": "<nil>" if each["weight"] is None else decimals.show(each["weight"])}
        for each in given["options"]
    )
    _vote_weighted(context, {**given, "options": options})


def _update_params(context: Context, given: Values) -> None:
    params = Params(**given["params"])
    params.check()
    check_destination(context, params)
    Gov(context).store.set(PARAMS, encode(params))


def check_destination(context: Context, params: Params) -> None:
    """Raise :exc:`TxError` unless parameters name an account, or none, for the deposits of
    canceled proposals."""
    if params.proposal_cancel_dest:
        try:
            context.codec.parse(params.proposal_cancel_dest)
        except TxError:
            text = "deposits destination address is invalid"
            raise TxError(INTERNAL, f"{text}: {params.proposal_cancel_dest}") from None


HANDLERS = (
    Handler(types.MSG_SUBMIT, _submit),
    Handler(types.MSG_EXEC_CONTENT, _execute_content),
    Handler(types.MSG_VOTE, _vote),
    Handler(types.MSG_VOTE_WEIGHTED, _vote_weighted),
    Handler(types.MSG_DEPOSIT, _handle_deposit),
    Handler(types.MSG_CANCEL, _cancel),
    of_governance(types.MSG_UPDATE_PARAMS, _update_params),
    Handler(types.LEGACY_SUBMIT, _legacy_submit),
    Handler(types.LEGACY_VOTE, _vote),
    Handler(types.LEGACY_VOTE_WEIGHTED, _legacy_vote_weighted),
    Handler(types.LEGACY_DEPOSIT, _handle_deposit),
)
"""Handlers of x/gov."""
