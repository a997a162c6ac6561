"""Directives that write tables of routes and settings from the code itself."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from flask_noderpc import COMETBFT_ROUTES
from flask_noderpc.cometbft.routes import UNSAFE_ROUTES
from flask_noderpc.ethereum.rpc.dev.routes import DEV_ROUTES, REASONS
from flask_noderpc.ethereum.rpc.routes import EVM_ROUTES, SESSION_METHODS
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


class OtherNodes(_Table):
    """Every method of other nodes and their clients, with those that have it."""

    def lines(self) -> list[str]:
        nodes_by_method, reasons = read_other_nodes()
        here = {route.name: _here(route) for route in EVM_ROUTES + DEV_ROUTES}
        here |= dict.fromkeys(SESSION_METHODS, _SERVED) | reasons
        out = [".. list-table::", "   :header-rows: 1", "   :widths: 35 25 40", ""]
        out += ["   * - Method", "     - Has or calls it", "     - Here"]
        for method, names in sorted(nodes_by_method.items()):
            out += [f"   * - ``{method}``", f"     - {', '.join(names)}"]
            out += [f"     - {here.get(method, 'not served')}"]
        return out


_SERVED = "served"


def _here(route: Route[Any]) -> str:
    if route.tag != "Refused":
        return _SERVED
    return f"refused: {REASONS[route.name]}" if route.name in REASONS else route.doc


def read_other_nodes() -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the nodes and clients by the methods that they have or call, and the reasons of
    methods that are not served."""
    path = Path(__file__).parent / "ethereum" / "other_nodes.toml"
    document = tomllib.loads(path.read_text())
    nodes_by_method: dict[str, list[str]] = {}
    for node, namespaces in document["nodes"].items():
        for namespace, methods in namespaces.items():
            for method in methods.split():
                nodes_by_method.setdefault(f"{namespace}_{method}", []).append(node)
    reasons = {
        method: reason.replace("*_", r"\*_")
        for reason, methods in document["reasons"].items()
        for method in methods.split()
    }
    return nodes_by_method, reasons


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
    app.add_directive("noderpc-other-nodes", OtherNodes)
    app.add_directive("noderpc-settings", Settings)
    return {"parallel_read_safe": True}
