"""Decoder of logs, calldata, results and errors by a contract's ABI, in the JSON format of
Solidity's compiler.

Contracts can emit any bytes; bytes that do not fit the ABI are not decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eth_abi import decoding
from eth_abi.exceptions import DecodingError

from .. import jsoncodec
from ..protocol.secp256k1eth import keccak
from .abi_types import MAX_ENTRIES, Parameter, read_parameters, read_text, texts, type_budget

_MAX_SAME = 16
"""Maximum number of events with the same signature to try for a log; they differ in which
parameters are indexed."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a parameter as text."""

    name: str
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class DecodedAbi:
    """Signature and decoded values of a log, a call, its result or its error."""

    signature: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """An event, a function or an error of an ABI; events and errors have no outputs."""

    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...] = ()
    mutability: str = ""
    """``view``, ``pure``, ``nonpayable`` or ``payable`` for a function."""

    @property
    def signature(self) -> str:
        """The name with the types of the parameters, which is hashed."""
        return f"{self.name}({','.join(each.type.name for each in self.inputs)})"

    @property
    def selector(self) -> bytes:
        """The first four bytes of the hash, with which calldata and errors begin."""
        return keccak(self.signature.encode())[:4]

    @property
    def reads(self) -> bool:
        """True if a call of the function changes no state."""
        return self.mutability in ("view", "pure")

    def result(self, data: bytes) -> DecodedAbi | None:
        """Return what a call of the function has returned; ``None`` if the outputs do not
        fit."""
        return self._of(self.outputs, data)

    def arguments(self, data: bytes) -> DecodedAbi | None:
        """Return the inputs after a selector; ``None`` if they do not fit."""
        return self._of(self.inputs, data)

    def _of(self, parameters: Sequence[Parameter], data: bytes) -> DecodedAbi | None:
        try:
            return self.decoded(parameters, texts(parameters, data))
        except (DecodingError, ValueError):
            return None

    def decoded(self, parameters: Sequence[Parameter], found: Sequence[str]) -> DecodedAbi:
        """Return the decoded values from the text of each parameter."""
        named = zip(parameters, found, strict=True)
        values = (Value(each.name, each.type.name, text) for each, text in named)
        return DecodedAbi(self.signature, tuple(values))


# Errors that Solidity raises itself, which are in no ABI.
_OWN_ERRORS = (
    {"type": "error", "name": "Error", "inputs": [{"name": "reason", "type": "string"}]},
    {"type": "error", "name": "Panic", "inputs": [{"name": "code", "type": "uint256"}]},
)


class Abi:
    """Events, functions and errors of a contract, by the hash of their signature."""

    def __init__(self, entries: Sequence[tuple[str, Entry]]) -> None:
        self._events: dict[bytes, list[Entry]] = {}
        self._errors: dict[bytes, Entry] = {}
        self.functions: dict[bytes, Entry] = {}
        """Functions by their selector."""
        for kind, entry in entries:
            if kind == "event":
                # Events with the same hash may differ in which parameters are indexed.
                digest = keccak(entry.signature.encode())
                self._events.setdefault(digest, []).append(entry)
            else:
                table = self._errors if kind == "error" else self.functions
                table[entry.selector] = entry

    @classmethod
    def parse(cls, document: str) -> Abi:
        """Return the ABI in a JSON document, which may be a compiler's artifact; raise
        :exc:`ValueError`."""
        found = jsoncodec.decode(document)
        if isinstance(found, dict):
            found = found.get("abi")
        if not isinstance(found, list):
            raise ValueError(
                "expected a list of functions and events, or an object with one as 'abi'"
            )
        if len(found) > MAX_ENTRIES:
            raise ValueError(f"expected at most {MAX_ENTRIES} entries, got {len(found)}")
        return cls(list(_entries([*_OWN_ERRORS, *found])))

    def log(self, topics: Sequence[bytes], data: bytes) -> DecodedAbi | None:
        """Return the decoded log; ``None`` if no event of the ABI fits."""
        for entry in self._events.get(topics[0], ())[:_MAX_SAME] if topics else ():
            rest = [each for each in entry.inputs if not each.indexed]
            if len(entry.inputs) - len(rest) != len(topics) - 1:
                continue
            try:
                indexed, plain = iter(topics[1:]), iter(texts(rest, data))
                found = [
                    _topic(each, next(indexed)) if each.indexed else next(plain)
                    for each in entry.inputs
                ]
                return entry.decoded(entry.inputs, found)
            except (DecodingError, ValueError):
                continue
        return None

    def call(self, data: bytes) -> DecodedAbi | None:
        """Return the decoded calldata; ``None`` if no function of the ABI fits."""
        return _with_selector(self.functions, data)

    def error(self, data: bytes) -> DecodedAbi | None:
        """Return the decoded error of a reverted call; ``None`` if no error of the ABI
        fits."""
        return _with_selector(self._errors, data)


def _with_selector(entries: dict[bytes, Entry], data: bytes) -> DecodedAbi | None:
    entry = entries.get(data[:4])
    return None if entry is None or len(data) < 4 else entry.arguments(data[4:])


def _topic(parameter: Parameter, topic: bytes) -> str:
    if isinstance(parameter.type.decoder, decoding.Fixed32ByteSizeDecoder):
        return texts([parameter], topic)[0]
    # The topic of any other type is only the hash of the value.
    return f"keccak-256 0x{topic.hex()}"


def _entries(found: list[Any]) -> Iterator[tuple[str, Entry]]:
    left = type_budget()
    for row in found:
        if not isinstance(row, dict):
            raise ValueError("expected an object as each entry")
        # The type defaults to "function" in Solidity's ABI specification.
        kind = row.get("type", "function")
        if kind in ("event", "function", "error") and not row.get("anonymous"):
            yield kind, _entry(row, left, is_function=kind == "function")


def _entry(row: dict[str, Any], left: Iterator[int], *, is_function: bool) -> Entry:
    name, inputs = read_text(row, "name"), read_parameters(row.get("inputs", []), left)
    if not is_function:
        return Entry(name, inputs)
    # Compilers before Solidity 0.5 wrote these members instead of the mutability.
    older = "view" if row.get("constant") else "payable" if row.get("payable") else "nonpayable"
    outputs = read_parameters(row.get("outputs", []), left)
    return Entry(name, inputs, outputs, str(row.get("stateMutability", older)))
