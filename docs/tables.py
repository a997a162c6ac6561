"""Directives that write the tables of routes and settings from the code itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from flask_noderpc import COMETBFT_ROUTES
from flask_noderpc.cometbft.routes import UNSAFE_ROUTES
from flask_noderpc.ethereum.rpc.dev.routes import DEV_ROUTES
from flask_noderpc.ethereum.rpc.routes import EVM_ROUTES
from flask_noderpc.jsonrpc.params import specs
from flask_noderpc.jsonrpc.route import Route
from flask_noderpc.settings import settings_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class _Table(Directive):
    def lines(self) -> list[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        parent = nodes.section()
        self.state.nested_parse(StringList(self.lines(), "generated"), 0, parent)
        return parent.children


def _described(routes: Iterable[Route[Any]]) -> list[str]:
    out = []
    for route in routes:
        out += [f"``{route.name}``", f"   {route.doc}", ""]
        for spec in specs(route.params):
            default = "" if spec.default is None else f" Default: ``{spec.default!r}``."
            out += [f"   - ``{spec.wire}`` ({spec.kind.json_type}): {spec.doc}{default}"]
        out += [""]
    return out


class Routes(_Table):
    """Every route with its parameters, the unsafe ones last."""

    def lines(self) -> list[str]:
        return _described(COMETBFT_ROUTES + UNSAFE_ROUTES)


class EvmMethods(_Table):
    """Every method of one namespace of the EVM layer, or those of ``dev``."""

    required_arguments = 1

    def lines(self) -> list[str]:
        (namespace,) = self.arguments
        if namespace == "dev":
            return _described(DEV_ROUTES)
        return _described(
            route for route in EVM_ROUTES if route.name.startswith(f"{namespace}_")
        )


class Settings(_Table):
    """Settings of one group with types and defaults; ``first`` are those for a newcomer."""

    required_arguments = 1

    def lines(self) -> list[str]:
        (group,) = self.arguments
        out = []
        for row in settings_of(group):
            kind = row.kind.label or "switch"
            out += [f"``{row.key}``", f"   {row.doc} ({kind}; default ``{row.default!r}``)", ""]
        return out


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("noderpc-routes", Routes)
    app.add_directive("noderpc-evm-methods", EvmMethods)
    app.add_directive("noderpc-settings", Settings)
    return {"parallel_read_safe": True}
