"""Companion of other nodes: their chain is followed, verified and served."""

from __future__ import annotations

from ..feature import Feature
from .settings import CompanionSettings

_SOURCE = "flask_noderpc.companion.source:FollowedChain"

FEATURE = Feature(
    name="companion",
    settings=CompanionSettings,
    title="The companion",
    # The source refuses evm_upstream without upstream.
    chain_sources={"upstream": _SOURCE, "evm_upstream": _SOURCE},
    commands=(
        "flask_noderpc.companion.commands.conform",
        "flask_noderpc.companion.commands.follow",
        "flask_noderpc.companion.commands.importing",
    ),
)
