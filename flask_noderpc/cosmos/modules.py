"""The modules of the application ``bank``, in addition to x/auth and x/bank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .authz.module import AuthzModule
from .bank.module import Module
from .distribution.module import DistributionModule
from .evidence.module import EvidenceModule
from .feegrant.module import FeegrantModule
from .gov.module import GovModule
from .mint.module import MintModule
from .params.module import ParamsModule
from .protocolpool.module import ProtocolPoolModule
from .slashing.module import SlashingModule
from .staking.module import StakingModule
from .upgrade.module import UpgradeModule
from .vesting.module import VestingModule

MODULES: tuple[Module, ...] = (
    DistributionModule(),
    StakingModule(),
    SlashingModule(),
    GovModule(),
    MintModule(),
    EvidenceModule(),
    FeegrantModule(),
    AuthzModule(),
    VestingModule(),
    ParamsModule(),
    UpgradeModule(),
    ProtocolPoolModule(),
)
"""The modules, in the order in which their genesis states are read."""

_END_ORDER = ("gov", "staking", "feegrant")
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
    return _sorted(modules, _BEGIN_ORDER)


def in_end_order(modules: Iterable[Module]) -> list[Module]:
    """Return modules in the order of their work at the end of a block."""
    return _sorted(modules, _END_ORDER)


def _sorted(modules: Iterable[Module], order: Sequence[str]) -> list[Module]:
    return sorted(
        modules, key=lambda each: order.index(each.name) if each.name in order else 99
    )
