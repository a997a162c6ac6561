"""Feature ``companion``: follows, verifies and serves the chain of other nodes."""

from __future__ import annotations

from ..feature import Feature
from .settings import CompanionSettings

_SOURCE = "flask_noderpc.companion.source:FollowedChain"

FEATURE = Feature(
    name="companion",
    settings=CompanionSettings,
    title="The companion",
    # Select the source by evm_upstream, too, as it raises an error if upstream is missing.
    chain_sources={"upstream": _SOURCE, "evm_upstream": _SOURCE},
    starts={"--upstream URL": "a companion: the chain of running nodes"},
    evm_calls="flask_noderpc.companion.from_settings:evm_calls",
    commands=(
        "flask_noderpc.companion.commands.conform",
        "flask_noderpc.companion.commands.follow",
        "flask_noderpc.companion.commands.importing",
        "flask_noderpc.companion.commands.status",
    ),
)
