"""Store of x/slashing: how validators sign; SDK: x/slashing/keeper/signing_info.go."""

from __future__ import annotations

from dataclasses import dataclass

from ..bank.context import Context
from ..bank.params import check_positive, check_rate
from ..protocol import decimals
from ..protocol.records import decode, encode, record
from ..protocol.text import duration
from ..staking.state import Staking, sized

STORE = b"slashing/"
"""Prefix of the module's keys."""

PARAMS, SIGNING_INFO, _MISSED, KEYS = (bytes((number,)) for number in range(4))

# Bits in a chunk of the bitmap of missed blocks.
_CHUNK = 1024


@record("SlashingParams")
@dataclass(frozen=True, slots=True)
class Params:
    """Parameters of x/slashing; fractions are in units of 10^-18."""

    signed_blocks_window: int = 0
    min_signed_per_window: int = 0
    downtime_jail_duration: int = 0
    slash_fraction_double_sign: int = 0
    slash_fraction_downtime: int = 0

    def check(self) -> None:
        """Raise :exc:`TxError` for invalid parameters."""
        check_positive("signed blocks window", self.signed_blocks_window)
        check_rate("min signed per window", self.min_signed_per_window)
        jailed = self.downtime_jail_duration
        check_positive("downtime jail duration", jailed, duration(jailed))
        check_rate("double sign slash fraction", self.slash_fraction_double_sign)
        check_rate("downtime slash fraction", self.slash_fraction_downtime)

    @property
    def most_missed(self) -> int:
        """Blocks of a window that a validator may miss."""
        least = decimals.mul_int(self.min_signed_per_window, self.signed_blocks_window)
        return self.signed_blocks_window - decimals.round_int(least)


@record("ValidatorSigningInfo")
@dataclass(slots=True)
class SigningInfo:
    """How a validator signs blocks."""

    address: str = ""
    start_height: int = 0
    index_offset: int = 0
    jailed_until: int = 0
    tombstoned: bool = False
    missed_blocks_counter: int = 0


class Slashing:
    """How validators sign, in the state of a context."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.store = context.store(STORE)
        self.staking = Staking(context)

    def params(self) -> Params:
        """Return the parameters."""
        return decode(Params, self.store.get(PARAMS) or b"")

    def find_info(self, address: bytes) -> SigningInfo | None:
        """Return how a validator signs, by its key's address; ``None`` if it never did."""
        stored = self.store.get(SIGNING_INFO + sized(address))
        return None if stored is None else decode(SigningInfo, stored)

    def set_info(self, address: bytes, info: SigningInfo) -> None:
        """Store how a validator signs."""
        self.store.set(SIGNING_INFO + sized(address), encode(info))

    def _chunk(self, address: bytes, index: int) -> bytes:
        number = (index // _CHUNK).to_bytes(8, "little")
        return _MISSED + sized(address) + number

    def has_missed(self, address: bytes, index: int) -> bool:
        """Return true if a validator missed the block with this index in its window."""
        stored = self.store.get(self._chunk(address, index))
        return bool(_bits(stored) >> index % _CHUNK & 1)

    def set_missed(self, address: bytes, index: int, *, missed: bool) -> None:
        """Store whether a validator missed the block with this index in its window."""
        key = self._chunk(address, index)
        bit = 1 << index % _CHUNK
        bits = _bits(self.store.get(key))
        bits = bits | bit if missed else bits & ~bit
        # SDK: the bitset's length in bits, then words of 64 bits, the lowest first.
        words = (bits >> 64 * at & (1 << 64) - 1 for at in range(_CHUNK // 64))
        self.store.set(key, _CHUNK.to_bytes(8) + b"".join(word.to_bytes(8) for word in words))

    def forget_missed(self, address: bytes) -> None:
        """Remove the missed blocks of a validator."""
        for key, _ in self.store.iterate(_MISSED + sized(address)):
            self.store.delete(key)


def _bits(stored: bytes | None) -> int:
    words = (stored or b"")[8:]
    found = 0
    for at in range(0, len(words), 8):
        found |= int.from_bytes(words[at : at + 8]) << 8 * at
    return found
