"""The companion: a chain of other nodes, which is followed, verified and served."""

from __future__ import annotations

from ..feature import Feature

FEATURE = Feature(
    name="companion",
    commands=(
        "flask_noderpc.companion.commands.conform",
        "flask_noderpc.companion.commands.follow",
        "flask_noderpc.companion.commands.importing",
    ),
)
