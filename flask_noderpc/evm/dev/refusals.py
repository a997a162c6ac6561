"""Methods of anvil and hardhat that would make the chain another than its blocks say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

from ...jsonrpc.context import Context
from ..errors import NOT_SUPPORTED, EvmError
from ..execution.unsupported import UnreadParams

_REASONS = (
    (
        ("setMinGasPrice",),
        "the base fee is the least (EIP-1559): setNextBlockBaseFeePerGas sets it",
    ),
    (("setPrevRandao",), "blocks have no randomness of a beacon chain"),
    (("setChainId",), "NODERPC_EVM_CHAIN_ID sets the chain id, before the chain begins"),
    (("setRpcUrl",), "the chain of another node can't be taken over here"),
    (("setLoggingEnabled",), "the host's logging decides what is logged"),
    (("reorg", "rollback"), "evm_snapshot and evm_revert take blocks back"),
)


def _reasons() -> Iterator[tuple[str, str]]:
    for names, reason in _REASONS:
        for name in names:
            yield f"anvil_{name}", reason
            yield f"hardhat_{name}", reason


REASONS: Mapping[str, str] = dict(_reasons())
"""Why each of them is not here."""


def refusing(name: str) -> Callable[[Context, UnreadParams], NoReturn]:
    """Return a handler that refuses a method."""

    def refuse(ctx: Context, params: UnreadParams) -> NoReturn:
        """Refused: it would make the chain another than its blocks say."""
        raise EvmError(f"{name} is not supported: {REASONS[name]}", code=NOT_SUPPORTED)

    return refuse
