"""Directives that write the tables of routes and settings from the code itself."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from flask_noderpc import NODE_ROUTES
from flask_noderpc.node.table import UNSAFE_ROUTES
from flask_noderpc.rpc.params import specs
from flask_noderpc.settings import SETTINGS


class _Table(Directive):
    def lines(self) -> list[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        parent = nodes.section()
        self.state.nested_parse(StringList(self.lines(), "generated"), 0, parent)
        return parent.children


class Routes(_Table):
    """Every route with its parameters, the unsafe ones last."""

    def lines(self) -> list[str]:
        out = []
        for route in NODE_ROUTES + UNSAFE_ROUTES:
            out += [f"``{route.name}``", f"   {route.doc}", ""]
            for spec in specs(route.params):
                default = "" if spec.default is None else f" Default: ``{spec.default!r}``."
                out += [f"   - ``{spec.wire}`` ({spec.kind.json_type}): {spec.doc}{default}"]
            out += [""]
        return out


class Settings(_Table):
    """Every setting with its default."""

    def lines(self) -> list[str]:
        out = []
        for row in SETTINGS:
            out += [f"``{row.key}``", f"   {row.doc} Default: ``{row.default!r}``.", ""]
        return out


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("noderpc-routes", Routes)
    app.add_directive("noderpc-settings", Settings)
    return {"parallel_read_safe": True}
