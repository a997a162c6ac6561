"""Query methods of x/gov, of the versions v1 and v1beta1; SDK: x/gov/keeper/grpc_query.go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...domain.time import ZERO_TIME
from ...protocol.protobuf import message
from ..bank.errors import INVALID_TYPE, TxError
from ..bank.queries.pages import Page, encode_page
from ..bank.queries.request import Method, QueryContext, coded, internal, invalid, not_found
from ..protocol import decimals
from ..protocol.coins import parse_integer
from ..protocol.proto import MESSAGES
from ..protocol.records import decode, encode
from ..staking.state import sized
from . import types
from .records import DEPOSIT_PERIOD, FAILED, VOTING_PERIOD, Deposit, Proposal, TallyResult, Vote
from .state import CONSTITUTION, DEPOSITS, PROPOSALS, STORE, VOTES, Gov, id_key, missing
from .tally import tally

Show = Callable[[Any], bytes]
"""A function that encodes a record for one version of the queries."""


def _number(ctx: QueryContext) -> int:
    number = ctx.request.integer(1)
    if not number:
        raise invalid("proposal id can not be 0")
    return number


def _found_proposal(ctx: QueryContext) -> Proposal:
    number = _number(ctx)
    found = Gov(ctx.context()).find(number)
    if found is None:
        raise not_found(f"proposal {number} doesn't exist")
    return found


def _constitution(ctx: QueryContext) -> bytes:
    stored = ctx.get(STORE + CONSTITUTION) or b""
    return MESSAGES.encode("gov.ConstitutionResponse", constitution=stored)


def _proposal(ctx: QueryContext, show: Show) -> bytes:
    return message(1, show(_found_proposal(ctx)))


def _proposals(ctx: QueryContext, show: Show) -> bytes:
    status, store = ctx.request.integer(1), ctx.context().store(STORE)
    named = (VOTES, ctx.request.text(2)), (DEPOSITS, ctx.request.text(3))

    def keeps(key: bytes, stored: bytes) -> bool:
        if DEPOSIT_PERIOD <= status <= FAILED and decode(Proposal, stored).status != status:
            return False
        for prefix, text in named:
            if text and not store.has(prefix + key + _sized(ctx, text)):
                return False
        return True

    page, pairs = Page.decode(ctx.request.blob(4), internal), ctx.range(STORE + PROPOSALS)
    return encode_page(page, pairs, _entry(Proposal, show), keeps=keeps)


def _sized(ctx: QueryContext, text: str) -> bytes:
    try:
        address = ctx.codec.parse(text)
    except TxError as error:
        raise internal(error.log) from None
    return sized(address)


def _entry(kind: type[Any], show: Show) -> Callable[[bytes, bytes], bytes]:
    return lambda key, stored: show(decode(kind, stored))


def _page(ctx: QueryContext, prefix: bytes, kind: type[Any], show: Show) -> bytes:
    """Return a page of what belongs to a proposal."""
    pairs = ctx.range(STORE + prefix + id_key(_number(ctx)))
    page = Page.decode(ctx.request.blob(2), internal)
    return encode_page(page, pairs, _entry(kind, show))


def _votes(ctx: QueryContext, show: Show) -> bytes:
    return _page(ctx, VOTES, Vote, show)


def _deposits(ctx: QueryContext, show: Show) -> bytes:
    return _page(ctx, DEPOSITS, Deposit, show)


def _of_account(ctx: QueryContext, name: str) -> tuple[int, bytes]:
    """Return the proposal and the account that a request names."""
    number = _number(ctx)
    if not ctx.request.text(2):
        raise invalid(f"empty {name} address")
    return number, ctx.owner(number=2)


def _vote(ctx: QueryContext, show: Show) -> bytes:
    number, voter = _of_account(ctx, "voter")
    stored = ctx.get(STORE + VOTES + id_key(number) + sized(voter))
    if stored is None:
        raise invalid(f"voter: {ctx.request.text(2)} not found for proposal: {number}")
    return message(1, show(decode(Vote, stored)))


def _deposit(ctx: QueryContext, show: Show) -> bytes:
    number, depositor = _of_account(ctx, "depositor")
    found = Gov(ctx.context()).find_deposit(number, depositor)
    if found is None:
        key = f'("{number}", "{ctx.codec.show(depositor)}")'
        raise not_found(missing(key, "Deposit").log)
    return message(1, show(found))


def _tally_result(ctx: QueryContext, show: Show) -> bytes:
    proposal = _found_proposal(ctx)
    if proposal.status == VOTING_PERIOD:
        result = tally(Gov(ctx.context()), proposal).result
    elif proposal.status == DEPOSIT_PERIOD or proposal.final_tally_result is None:
        result = TallyResult()
    else:
        result = proposal.final_tally_result
    return message(1, show(result))


_PARAMS = {
    "deposit": ("deposit_params", ("min_deposit", "max_deposit_period")),
    "voting": ("voting_params", ("voting_period",)),
    "tallying": ("tally_params", ("quorum", "threshold", "veto_threshold")),
}


def _asked_params(ctx: QueryContext) -> dict[str, dict[str, Any]]:
    """Return the parameters of the kind that a request names, by the response's field."""
    kind, params = ctx.request.text(1), Gov(ctx.context()).params()
    if not kind:
        return {}
    if kind not in _PARAMS:
        raise invalid(f"unknown params type: {kind}")
    field, names = _PARAMS[kind]
    return {field: {name: getattr(params, name) for name in names}}


def _params(ctx: QueryContext) -> bytes:
    own = Gov(ctx.context()).params()
    return MESSAGES.encode("gov.ParamsResponse", **_asked_params(ctx), params=own)


def _legacy_params(ctx: QueryContext) -> bytes:
    found = _asked_params(ctx)
    if not found:
        raise invalid(f"{ctx.request.text(1)} is not a valid parameter type")
    tallying = found.get("tally_params", dict.fromkeys(_PARAMS["tallying"][1], "0"))
    shown = {
        "voting_params": {"voting_period": 0},
        "deposit_params": {"max_deposit_period": 0},
        **found,
        "tally_params": {name: decimals.parse(text) for name, text in tallying.items()},
    }
    return MESSAGES.encode("gov.v1beta1.ParamsResponse", **shown)


def _show_legacy_proposal(given: Proposal) -> bytes:
    if len(given.messages) != 1:
        raise coded(
            TxError(
                INVALID_TYPE,
                "can't convert a gov/v1 Proposal to gov/v1beta1 Proposal when amount of"
                " proposal messages not exactly one",
            )
        )
    (content,) = given.messages
    if content.type_url == types.MSG_EXEC_CONTENT.type_url:
        content = types.MSG_EXEC_CONTENT.kind.decode(content.value)["content"]
    times = ("submit_time", "deposit_end_time", "voting_start_time", "voting_end_time")
    found = {name: getattr(given, name) for name in times}
    return MESSAGES.encode(
        "LegacyProposal",
        proposal_id=given.id,
        content=content,
        status=given.status,
        final_tally_result=_show_legacy_tally(given.final_tally_result or TallyResult()),
        total_deposit=given.total_deposit,
        **{name: ZERO_TIME if time is None else time for name, time in found.items()},
    )


def _show_legacy_tally(given: TallyResult) -> bytes:
    return MESSAGES.encode(
        "LegacyTallyResult",
        yes=parse_integer(given.yes_count),
        abstain=parse_integer(given.abstain_count),
        no=parse_integer(given.no_count),
        no_with_veto=parse_integer(given.no_with_veto_count),
    )


def _show_legacy_vote(given: Vote) -> bytes:
    options = [
        {"option": each.option, "weight": decimals.parse(each.weight)} for each in given.options
    ]
    return MESSAGES.encode(
        "LegacyVote", proposal_id=given.proposal_id, voter=given.voter, options=options
    )


def _with(method: Callable[[QueryContext, Show], bytes], show: Show) -> Method:
    return lambda ctx: method(ctx, show)


_SHOWN: Mapping[str, tuple[Callable[[QueryContext, Show], bytes], Show]] = {
    "Proposal": (_proposal, _show_legacy_proposal),
    "Proposals": (_proposals, _show_legacy_proposal),
    "Vote": (_vote, _show_legacy_vote),
    "Votes": (_votes, _show_legacy_vote),
    "Deposit": (_deposit, encode),
    "Deposits": (_deposits, encode),
    "TallyResult": (_tally_result, _show_legacy_tally),
}

METHODS: Mapping[str, Method] = {
    "Constitution": _constitution,
    "Params": _params,
    **{name: _with(method, encode) for name, (method, _) in _SHOWN.items()},
}
"""Query methods by name."""

LEGACY_METHODS: Mapping[str, Method] = {
    "Params": _legacy_params,
    **{name: _with(method, show) for name, (method, show) in _SHOWN.items()},
}
"""Query methods of the version v1beta1 by name."""
