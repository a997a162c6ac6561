"""Messages of ``console.log`` in contracts: calls to the address of hardhat's console library,
which forge's ``console`` and ``console2`` use, too.

https://hardhat.org/hardhat-network/docs/reference#console-log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from ...protocol.secp256k1eth import keccak
from .abi import value
from .forms import WORD

# Types of the arguments of ``log``, and the maximum number of its arguments.
_TYPES, _MOST = ("uint256", "string", "bool", "address"), 4
_PLACE = re.compile(r"%[%sdiox]")


def message(data: bytes) -> str:
    """Return the text that a call to the console prints, or its data in hex if the call is not
    known; a string whose end is missing is shown without it."""
    types = _signatures().get(data[:4])
    if types is None:
        return f"0x{data.hex()}"
    values = [value(kind, data[4:], index) for index, kind in enumerate(types)]
    return escaped(_formatted(values, starts_with_text=types[:1] == ("string",)))


@lru_cache(1)
def _signatures() -> dict[bytes, tuple[str, ...]]:
    """Return the types of the arguments by selector."""
    return {
        keccak(f"log({','.join(written)})".encode())[:4]: types
        for types in _arguments()
        # Early versions of the library have the selectors of ``uint`` and ``int``, which are
        # not the names that ABI has for these types.
        for written in (types, tuple(kind.replace("int256", "int") for kind in types))
    }


def _arguments() -> Iterator[tuple[str, ...]]:
    for count in range(_MOST + 1):
        yield from product(_TYPES, repeat=count)
    # The functions logInt, logBytes and logBytes1 to logBytes32 call it, too.
    yield from product(("int256", "bytes", *(f"bytes{size}" for size in range(1, WORD + 1))))


def _formatted(values: list[str], *, starts_with_text: bool) -> str:
    """Return the values in the places of the first, such as ``%s``, and the others after it."""
    if not starts_with_text or len(values) < 2:
        return " ".join(values)
    rest = iter(values[1:])

    def fill(place: re.Match[str]) -> str:
        return "%" if place[0] == "%%" else _filled(place[0], next(rest, place[0]))

    return " ".join((_PLACE.sub(fill, values[0]), *rest))


def _filled(place: str, value: str) -> str:
    is_number = place == "%x" and value.removeprefix("-").isdecimal()
    return f"{int(value):#x}" if is_number else value


def escaped(text: str) -> str:
    """Return text without control characters, so that a contract can't forge lines of a log."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
