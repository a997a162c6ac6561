"""Routes of Cosmos SDK development chains: the faucet."""

from __future__ import annotations

from dataclasses import dataclass

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


DEV_ROUTES = (Route("dev_faucet", faucet, Faucet, ResultBroadcastTx),)
