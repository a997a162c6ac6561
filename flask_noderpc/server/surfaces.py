"""Surfaces of ``noderpc start``: the node's RPC, and those of enabled APIs."""

from __future__ import annotations

from collections.abc import Iterator

from ..feature import Surface, apis
from ..settings import Settings

NODE = Surface(name="node", title="node RPC", address="rpc_laddr", endpoint="rpc")


def surfaces() -> dict[str, Surface]:
    """Return all surfaces by their names."""
    return {each.name: each for each in (NODE, *(s for api in apis() for s in api.surfaces))}


def surfaces_of(settings: Settings) -> Iterator[Surface]:
    """Yield the surfaces that settings enable."""
    yield NODE
    for api in settings.apis():
        yield from api.surfaces
