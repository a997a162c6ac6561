"""Ethereum: its JSON-RPC, and a chain that runs its transactions."""

from __future__ import annotations

from ..feature import Feature
from .event_aliases import ALIASES

FEATURE = Feature(name="ethereum", event_aliases=ALIASES)
