"""The module slashing: messages, queries and genesis, with the interface of modules; SDK:
x/slashing."""

from __future__ import annotations

from types import MappingProxyType

from ...protocol.protobuf import message
from ..bank.context import Context
from ..bank.errors import INVALID_ADDRESS, TxError
from ..bank.genesis_json import Item
from ..bank.genesis_values import read
from ..bank.messages import Handler, of_governance
from ..bank.module import Module
from ..bank.params import read_params, updating
from ..bank.queries.pages import Page, encode_page
from ..bank.queries.request import QueryContext, invalid, not_found
from ..protocol.fields import Values, declared
from ..protocol.messages import MessageType
from ..protocol.proto import MESSAGES
from ..protocol.records import encode
from ..staking.hooks import StakingHooks
from ..staking.records import Validator
from ..staking.state import sized
from . import penalties
from .proto import ROUTES
from .state import KEYS, PARAMS, SIGNING_INFO, STORE, Params, SigningInfo, Slashing

MSG_UNJAIL = MessageType(
    "/cosmos.slashing.v1beta1.MsgUnjail",
    declared("*types.MsgUnjail", "cosmos.slashing.v1beta1.MsgUnjail", signer="address"),
    "cosmos-sdk/MsgUnjail",
    is_signed_by_operator=True,
)


MSG_UPDATE_PARAMS = MessageType(
    "/cosmos.slashing.v1beta1.MsgUpdateParams",
    declared(
        "*types.MsgUpdateParams",
        "cosmos.slashing.v1beta1.MsgUpdateParams",
        signer="authority",
        params=declared("*types.Params", "SlashingParams"),
    ),
    "cosmos-sdk/x/slashing/MsgUpdateParams",
)


def _unjail(context: Context, given: Values) -> None:
    try:
        operator = context.environment.operators.parse(given["address"])
    except TxError as error:
        text = f"validator input address: {error.log}"
        raise TxError(INVALID_ADDRESS, text) from None
    penalties.unjail(Slashing(context), operator)


def _params(ctx: QueryContext) -> bytes:
    return message(1, ctx.get(STORE + PARAMS) or b"")


def _signing_info(ctx: QueryContext) -> bytes:
    text = ctx.request.text(1)
    if not text:
        raise invalid("invalid request")
    address = ctx.owner(ctx.environment.consensus)
    stored = ctx.get(STORE + SIGNING_INFO + sized(address))
    if stored is None:
        raise not_found(f"SigningInfo not found for validator {text}")
    return message(1, stored)


def _signing_infos(ctx: QueryContext) -> bytes:
    page = Page.decode(ctx.request.blob(1))
    pairs = ctx.range(STORE + SIGNING_INFO)
    return encode_page(page, pairs, lambda key, stored: stored, is_plain=True)


def _store_key(slashing: Slashing, validator: Validator) -> None:
    key = MESSAGES.encoder("Any")(validator.consensus_pubkey)
    slashing.store.set(KEYS + sized(validator.consensus_address), key)


class SlashingModule(Module, StakingHooks):
    """Blocks that validators sign or miss, and penalties."""

    name = "slashing"
    version = 4
    service = "cosmos.slashing.v1beta1.Query"
    handlers = (
        Handler(MSG_UNJAIL, _unjail),
        of_governance(MSG_UPDATE_PARAMS, updating(Params, STORE, PARAMS)),
    )
    queries = MappingProxyType(
        {"Params": _params, "SigningInfo": _signing_info, "SigningInfos": _signing_infos}
    )
    routes = ROUTES

    def init_genesis(self, context: Context, state: Item) -> None:
        slashing = Slashing(context)
        for validator in slashing.staking.all_validators():
            _store_key(slashing, validator)
        parse = context.environment.consensus.parse
        for each in state["signing_infos"]:
            address = each["address"].read(parse, "an address")
            slashing.set_info(address, read(SigningInfo, each["validator_signing_info"]))
        params = read_params(Params, state["params"])
        for each in state["missed_blocks"]:
            address = each["address"].read(parse, "an address")
            for missed in each["missed_blocks"]:
                index = missed["index"].whole_number(63)
                if index >= params.signed_blocks_window:
                    most = params.signed_blocks_window - 1
                    missed["index"].refuse(f"expected at most {most}")
                slashing.set_missed(address, index, missed=missed["missed"].flag())
        slashing.store.set(PARAMS, encode(params))

    def begin_block(self, context: Context) -> None:
        slashing = Slashing(context)
        for vote in context.environment.block.votes:
            penalties.handle_vote(slashing, vote)

    def after_validator_created(self, context: Context, operator: bytes) -> None:
        slashing = Slashing(context)
        _store_key(slashing, slashing.staking.validator(operator))

    def after_validator_removed(
        self, context: Context, address: bytes, operator: bytes, *, is_strict: bool
    ) -> None:
        context.store(STORE).delete(KEYS + sized(address))

    def after_validator_bonded(self, context: Context, address: bytes, operator: bytes) -> None:
        penalties.begin(Slashing(context), address)
