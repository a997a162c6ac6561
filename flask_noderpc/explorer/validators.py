"""Explorer pages of validators: the set at a height, and one with its power and signatures."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from flask import g, render_template

from ..backends.base.uptime import powers, uptimes
from ..domain.validator import ValidatorSet
from ..errors import NotFound, ValueNotAllowed
from .chain import integer, optional
from .charts import chart
from .node import Node

_POWERS = 60
"""Maximum number of heights in the chart of a validator's power."""
_ADDRESS = re.compile(r"[\da-fA-F]{40}", re.ASCII)


def validators() -> str:
    """Page with the validator set at a height."""
    node: Node = g.node
    height = integer("height", 0) or None
    page = integer("page", 1)
    found = node.call("validators", height=height, page=page, per_page=100)
    whole: ValidatorSet = node.read(
        "validators", lambda b: b.reads.validators(found.block_height)
    )
    last = min(found.block_height, _latest(node))
    return render_template(
        "noderpc_explorer/validators.html",
        found=found,
        total_power=whole.total_power,
        proposer=whole.proposer,
        last=last,
        uptimes=optional(lambda: node.read("commit", lambda b: uptimes(b.reads, last))) or {},
        page=page,
        pages=-(-found.total // 100),
    )


def validator(address: str) -> str:
    """Page of a validator, by its address in hex digits: its power and its signatures."""
    node: Node = g.node
    if not _ADDRESS.fullmatch(address):
        raise ValueNotAllowed(f"validator: expected 40 hex digits, got {address[:80]!r}")
    own, latest = bytes.fromhex(address), _latest(node)
    whole: ValidatorSet = node.read("validators", lambda b: b.reads.validators(max(1, latest)))
    found = optional(lambda: node.read("commit", lambda b: uptimes(b.reads, latest))) or {}
    history = node.read("validators", lambda b: powers(b.reads, own, latest, _POWERS))
    known = own in whole.by_address or own in found or any(power for _, power in history)
    if not known:
        raise NotFound(
            f"validator: {address[:80]} is in none of the validator sets that were read",
            "the page of validators lists the set at each height",
        )
    place, member = whole.by_address.get(own, (0, None))
    return render_template(
        "noderpc_explorer/validator.html",
        address=address.upper(),
        latest=latest,
        place=place + 1,
        member=member,
        whole=whole,
        uptime=found.get(own),
        power=chart("Voting power", "", history),
    )


def _latest(node: Node) -> int:
    return node.read("validators", lambda backend: backend.reads.latest_height())


VIEWS: dict[str, tuple[Callable[..., Any], str]] = {
    "/validators": (validators, "validators"),
    "/validator/<address>": (validator, "validators"),
}
