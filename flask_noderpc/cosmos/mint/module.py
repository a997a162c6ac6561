"""The module mint: inflation, state, queries and genesis; SDK: x/mint."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from ...protocol.protobuf import message
from ..bank.accounts import FEE_COLLECTOR
from ..bank.balances import event
from ..bank.context import Context
from ..bank.errors import INTERNAL, TxError
from ..bank.genesis_json import Item
from ..bank.genesis_values import read
from ..bank.messages import of_governance
from ..bank.module import Module
from ..bank.params import check_denom, check_positive, check_rate, read_params, updating
from ..bank.queries.request import QueryContext
from ..protocol import coins, decimals
from ..protocol.coins import Coin
from ..protocol.fields import declared
from ..protocol.messages import MessageType
from ..protocol.proto import MESSAGES
from ..protocol.records import decode, encode, record
from ..staking.state import BONDED_POOL, Staking
from .proto import ROUTES

_NAME = "mint"
_STORE = b"mint/"
_MINTER, _PARAMS = b"\0", b"\1"
# Key of the maximum supply, a parameter since SDK 0.54; absent if the supply is unlimited.
_MAX_SUPPLY = b"max_supply"
_MOST_BLOCKS = (1 << 63) - 1


@record("MintParams")
@dataclass(frozen=True, slots=True)
class Params:
    """Parameters of x/mint; rates are in units of 10^-18."""

    mint_denom: str = ""
    inflation_rate_change: int = 0
    inflation_max: int = 0
    inflation_min: int = 0
    goal_bonded: int = 0
    blocks_per_year: int = 0

    def check(self) -> None:
        """Raise :exc:`TxError` for invalid parameters."""
        check_denom("mint", self.mint_denom)
        check_rate("inflation rate change", self.inflation_rate_change)
        check_rate("max inflation", self.inflation_max)
        check_rate("min inflation", self.inflation_min)
        if self.goal_bonded is not None:
            check_positive("goal bonded", self.goal_bonded, decimals.show(self.goal_bonded))
        check_rate("goal bonded", self.goal_bonded)
        check_positive("blocks per year", self.blocks_per_year)
        if self.blocks_per_year > _MOST_BLOCKS:
            text = f"{self.blocks_per_year}, maximum value is: {_MOST_BLOCKS}"
            raise TxError(INTERNAL, f"blocks per year too large: {text}")
        if self.inflation_max < self.inflation_min:
            most, least = decimals.show(self.inflation_max), decimals.show(self.inflation_min)
            raise TxError(
                INTERNAL,
                f"max inflation ({most}) must be greater than or equal to min inflation"
                f" ({least})",
            )


@record("Minter")
@dataclass(frozen=True, slots=True)
class Minter:
    """Inflation, and new coins in a year, in units of 10^-18."""

    inflation: int = 0
    annual_provisions: int = 0


MSG_UPDATE_PARAMS = MessageType(
    "/cosmos.mint.v1beta1.MsgUpdateParams",
    declared(
        "*types.MsgUpdateParams",
        "cosmos.mint.v1beta1.MsgUpdateParams",
        signer="authority",
        params=declared("*types.Params", "MintParams"),
    ),
    "cosmos-sdk/x/mint/MsgUpdateParams",
)


def _minter(context: Context) -> Minter:
    return decode(Minter, context.store(_STORE).get(_MINTER) or b"")


def _bonded_ratio(context: Context, supply: int) -> int:
    """Return the part of a supply that is bonded, as a decimal number."""
    if supply <= 0:
        return 0
    pool = context.accounts.module(BONDED_POOL)
    bonded = context.balances.get(pool, Staking(context).bond_denom())
    return decimals.quo_int(decimals.of(bonded), supply)


def _inflation(before: int, params: Params, ratio: int) -> int:
    """Return the inflation of the next block; SDK: NextInflationRate."""
    goal = decimals.ONE - decimals.quo(ratio, params.goal_bonded)
    yearly = decimals.mul(goal, params.inflation_rate_change)
    found = before + decimals.quo(yearly, decimals.of(params.blocks_per_year))
    return max(min(found, params.inflation_max), params.inflation_min)


def _mint(context: Context) -> None:
    store, before = context.store(_STORE), _minter(context)
    params = decode(Params, store.get(_PARAMS) or b"")
    supply = context.balances.supply(Staking(context).bond_denom())
    ratio = _bonded_ratio(context, supply)
    inflation = _inflation(before.inflation, params, ratio)
    minter = Minter(inflation, decimals.mul_int(inflation, supply))
    store.set(_MINTER, encode(minter))
    provision = decimals.truncate(
        decimals.quo_int(minter.annual_provisions, params.blocks_per_year)
    )
    # SDK: the chain halts at a supply of more than 256 bits.
    maximum = int(store.get(_MAX_SUPPLY) or coins.MAX_AMOUNT)
    left = maximum - context.balances.supply(params.mint_denom)
    provision = max(min(provision, left), 0)
    minted = (Coin(params.mint_denom, provision),) if provision else ()
    if minted:
        context.balances.mint(_NAME, minted)
    context.balances.send_between_modules(_NAME, FEE_COLLECTOR, minted)
    context.events.append(
        event(
            "mint",
            bonded_ratio=decimals.show(ratio),
            inflation=decimals.show(minter.inflation),
            annual_provisions=decimals.show(minter.annual_provisions),
            amount=str(provision),
        )
    )


def _max_supply(given: Item) -> int:
    """Return the maximum supply of a genesis state; 0 if it is unlimited."""
    text = given.text()
    amount = given.read(lambda _: coins.parse_amount(text), "an amount") or 0
    if amount < 0:
        given.refuse("expected at least 0")
    return amount


def _query_params(ctx: QueryContext) -> bytes:
    return message(1, ctx.get(_STORE + _PARAMS) or b"")


def _query_inflation(ctx: QueryContext) -> bytes:
    inflation = _minter(ctx.context()).inflation
    return MESSAGES.encode("mint.InflationResponse", inflation=inflation)


def _query_provisions(ctx: QueryContext) -> bytes:
    provisions = _minter(ctx.context()).annual_provisions
    return MESSAGES.encode("mint.AnnualProvisionsResponse", annual_provisions=provisions)


class MintModule(Module):
    """New coins in each block, which the validators and delegators get."""

    name = _NAME
    version = 2
    service = "cosmos.mint.v1beta1.Query"
    accounts = MappingProxyType({_NAME: ("minter",)})
    handlers = (of_governance(MSG_UPDATE_PARAMS, updating(Params, _STORE, _PARAMS)),)
    queries = MappingProxyType(
        {
            "AnnualProvisions": _query_provisions,
            "Inflation": _query_inflation,
            "Params": _query_params,
        }
    )
    routes = ROUTES

    def init_genesis(self, context: Context, state: Item) -> None:
        params, minter = read_params(Params, state["params"]), read(Minter, state["minter"])
        store, maximum = context.store(_STORE), _max_supply(state["params"]["max_supply"])
        if maximum:
            store.set(_MAX_SUPPLY, b"%d" % maximum)
        store.set(_MINTER, encode(minter))
        store.set(_PARAMS, encode(params))
        context.accounts.module(_NAME)

    def begin_block(self, context: Context) -> None:
        _mint(context)
