"""Gas of store accesses, and gas meters; SDK: store/types/gas.go, store/gaskv."""

from __future__ import annotations

from dataclasses import dataclass

HAS = DELETE = READ = 1_000
WRITE = 2_000
READ_BYTE, WRITE_BYTE = 3, 30
NEXT = 30


class OutOfGas(Exception):
    """Error for a step that costs more gas than remains; ``place`` is the SDK's name of the
    step, such as ``txSize``."""

    def __init__(self, place: str) -> None:
        self.place = place
        super().__init__(place)


@dataclass(slots=True)
class GasMeter:
    """Counter of consumed gas; a limit of ``None`` means no limit."""

    limit: int | None = None
    consumed: int = 0

    def consume(self, amount: int, place: str) -> None:
        """Add an amount of gas; raise :exc:`OutOfGas` if the sum exceeds the limit."""
        self.consumed += amount
        if self.limit is not None and self.consumed > self.limit:
            raise OutOfGas(place)

    @property
    def charged(self) -> int:
        """Consumed gas, at most the limit."""
        return self.consumed if self.limit is None else min(self.consumed, self.limit)

    @property
    def is_used_up(self) -> bool:
        """True if no gas is left."""
        return self.limit is not None and self.consumed >= self.limit

    def out_of_gas(self, error: OutOfGas, wanted: int) -> str:
        """Return the SDK's error text for a transaction with the gas limit ``wanted``."""
        return (
            f"out of gas in location: {error.place}; gasWanted: {wanted}, gasUsed:"
            f" {self.consumed}"
        )
