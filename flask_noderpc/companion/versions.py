"""The dialect of a node: by the version that it tells, else by the shape of its responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import jsoncodec
from ..errors import UpstreamMismatch, UpstreamRefused
from ..wire.dialect import Dialect
from ..wire.dialects import dialect_named

if TYPE_CHECKING:
    from .upstream import Upstream

_BY_VERSION = {
    "0.34": "comet-0.34",
    "0.35": "comet-0.34",
    "0.37": "comet-0.37",
    "0.38": "comet-0.38",
    "0.39": "comet-0.39",
    "0.40": "comet-0.40",
    "1": "comet-1.0",
}


def dialect_of(node: Upstream) -> Dialect:
    """Return the dialect that a node speaks; raise as :meth:`Upstream.raw` does.

    Forks tell versions of their own, which is why shapes decide where none is known.
    """
    status = _members(node, "status")
    key = _member(_member(status, "validator_info"), "pub_key")
    if str(_member(key, "type")).startswith("engine/"):
        # Of no CometBFT, whatever version such a node tells.
        return dialect_named("document")
    version = str(_member(_member(status, "node_info"), "version") or "")
    parts = version.removeprefix("v").split("-")[0].split(".")
    name = _BY_VERSION.get(".".join(parts[:2])) or _BY_VERSION.get(parts[0]) or _by_shape(node)
    if name == "comet-0.39" and not node.takes_any_id():
        # Version 0.40.0 tells that it is 0.39.0; its ids are whole numbers.
        name = "comet-0.40"
    return dialect_named(name)


def _by_shape(node: Upstream) -> str:
    results = _members(node, "block_results")
    if "total_gas_used" in results:
        # Sei: sei-tendermint, rpc/coretypes/responses.go, with the keys and values of 0.34.
        return "comet-0.34"
    if "finalize_block_events" in results:
        params = _member(_members(node, "consensus_params"), "consensus_params")
        if _member(params, "feature") is not None:
            # CometBFT 1.0: proto/tendermint/types/params.proto, FeatureParams.
            return "comet-1.0"
        return "comet-0.39" if _member(params, "authority") is not None else "comet-0.38"
    try:
        node.raw("header")
    except UpstreamRefused:
        # CometBFT 0.37: rpc/core/routes.go has it first.
        return "comet-0.34"
    return "comet-0.37"


def _members(node: Upstream, method: str) -> dict[str, Any]:
    found = jsoncodec.decode(bytes(node.raw(method)))
    if not isinstance(found, dict):
        raise UpstreamMismatch(node.name, f"{method} is no object")
    return found


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
