"""The methods that are there with NODERPC_DEV alone, for callers on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...jsonrpc.context import Context
from ...jsonrpc.params import NoParams
from ...jsonrpc.route import Route, RouteTable
from ..execution.filling import FillParams
from . import signing
from .control_routes import CONTROL_ROUTES


def _row(
    name: str, call: Callable[[Context, Any], Any], params: type, result: type
) -> Route[Any]:
    return Route(name, call, params, result, writes=True, signs=True)


DEV_ROUTES = RouteTable(
    (
        _row("eth_sendTransaction", signing.send, FillParams, bytes),
        _row("eth_signTransaction", signing.sign_transaction, FillParams, dict),
        _row("eth_requestAccounts", signing.accounts, NoParams, tuple),
        _row("eth_sign", signing.sign, signing.Message, bytes),
        _row("personal_sign", signing.personal_sign, signing.PersonalMessage, bytes),
        _row("eth_signTypedData", signing.sign_typed_data, signing.Typed, bytes),
        _row("eth_signTypedData_v4", signing.sign_typed_data, signing.Typed, bytes),
        _row("anvil_impersonateAccount", signing.impersonate, signing.Name, bool),
        _row("hardhat_impersonateAccount", signing.impersonate, signing.Name, bool),
        _row("anvil_stopImpersonatingAccount", signing.stop_impersonating, signing.Name, bool),
        _row(
            "hardhat_stopImpersonatingAccount", signing.stop_impersonating, signing.Name, bool
        ),
        _row(
            "anvil_autoImpersonateAccount", signing.impersonate_any, signing.SwitchParams, bool
        ),
        *CONTROL_ROUTES,
    )
)
