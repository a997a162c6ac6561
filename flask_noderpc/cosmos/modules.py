"""The modules of the application ``bank``, in addition to x/auth and x/bank."""

from __future__ import annotations

from collections.abc import Iterable

from .authz.module import AuthzModule
from .bank.module import Module
from .distribution.module import DistributionModule
from .evidence.module import EvidenceModule
from .feegrant.module import FeegrantModule
from .mint.module import MintModule
from .params.module import ParamsModule
from .protocolpool.module import ProtocolPoolModule
from .slashing.module import SlashingModule
from .staking.module import StakingModule
from .upgrade.module import UpgradeModule

MODULES: tuple[Module, ...] = (
    DistributionModule(),
    StakingModule(),
    SlashingModule(),
    MintModule(),
    EvidenceModule(),
    FeegrantModule(),
    AuthzModule(),
    ParamsModule(),
    UpgradeModule(),
    ProtocolPoolModule(),
)
"""The modules, in the order in which their genesis states are read."""

_BEGIN_ORDER = (
    "mint",
    "distribution",
    "protocolpool",
    "slashing",
    "evidence",
    "staking",
    "authz",
)


def in_begin_order(modules: Iterable[Module]) -> list[Module]:
    """Return modules in the order of their work at the beginning of a block; modules of
    users come last."""
    return sorted(
        modules,
        key=lambda each: _BEGIN_ORDER.index(each.name) if each.name in _BEGIN_ORDER else 99,
    )
