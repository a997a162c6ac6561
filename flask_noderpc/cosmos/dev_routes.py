"""Routes of Cosmos SDK development chains: the faucet, and faults of validators."""

from __future__ import annotations

from dataclasses import dataclass

from ..cometbft.unsafe import Number
from ..domain.responses import ResultBroadcastTx
from ..jsonrpc.context import Context
from ..jsonrpc.params import Params, param
from ..jsonrpc.route import Route
from ..protocol.comet import hashes
from ..wire.params import Text


@dataclass(frozen=True, slots=True)
class Faucet(Params):
    """Parameters of ``dev_faucet``."""

    address: str = param(Text(), doc="Address of the recipient.")
    coins: str = param(Text(), doc="Coins, such as ``10token,5stake``.")


def faucet(ctx: Context, params: Faucet) -> ResultBroadcastTx:
    """Send coins from the first development account to an address."""
    # Import the module when it is used: this route exists on every mount, but the package that
    # signs may only be installed for the application bank.
    from .bank.faucet import send

    raw, check = send(ctx.backend, params.address, params.coins)
    return ResultBroadcastTx(
        check.code, check.data, check.log, check.codespace, hashes.tx_hash(raw)
    )


@dataclass(frozen=True, slots=True)
class FaultyValidator(Params):
    """Parameters of ``dev_equivocate``."""

    validator: str = param(
        Text(), doc="Address of the validator's operator, or of the validator's key."
    )


@dataclass(frozen=True, slots=True)
class MissedBlocks(FaultyValidator):
    """Parameters of ``dev_missBlocks``."""

    blocks: int = param(Number(), doc="Number of blocks; 0 ends the fault.")


def miss_blocks(ctx: Context, params: MissedBlocks) -> bool:
    """Let a validator miss the next blocks; return true."""
    from .staking import faults

    faults.change(ctx.backend, lambda known: known.miss_blocks(params.validator, params.blocks))
    return True


def equivocate(ctx: Context, params: FaultyValidator) -> bool:
    """Let the next block have evidence that a validator signed two blocks; return true."""
    from .staking import faults

    faults.change(ctx.backend, lambda known: known.equivocate(params.validator))
    return True


DEV_ROUTES = (
    Route("dev_faucet", faucet, Faucet, ResultBroadcastTx),
    Route("dev_missBlocks", miss_blocks, MissedBlocks, bool),
    Route("dev_equivocate", equivocate, FaultyValidator, bool),
)
