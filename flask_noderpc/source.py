"""Generate Python source of functions that encode objects, from declarations of their fields.

Without generated source, calling a function for each member would take longer than the
encoding itself (``python -m benchmarks.costs``).
"""

from __future__ import annotations

import itertools
import linecache
import re
from binascii import b2a_base64
from collections.abc import Callable, Iterable
from keyword import iskeyword
from operator import attrgetter
from typing import Any

from .domain.time import to_text
from .jsoncodec import Raw, text_of

_VALUE = re.compile(r"\bvalue\b")
_numbers = itertools.count(1)
_NAMES = {"b2a_base64": b2a_base64, "to_text": to_text, "Raw": Raw, "text_of": text_of}
"""Functions that the generated source may call."""


class Scope:
    """The global names that generated source refers to."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = dict(_NAMES)
        self._count = 0

    def bind(self, value: object) -> str:
        """Bind a value to a new name, and return the name."""
        name = self.variable()
        self.names[name] = value
        return name

    def variable(self) -> str:
        """Return a new name for a local variable."""
        self._count += 1
        return f"_{self._count}"


def inline(encoding: str, value: str) -> str:
    """Return the source ``encoding`` with its name ``value`` replaced by an expression."""
    return _VALUE.sub(lambda _: value, encoding)


def or_null(encoded: Callable[[str], str], value: str, scope: Scope) -> str:
    """Return source of an expression: ``None`` if ``value`` is ``None``, otherwise its
    encoding."""
    name = scope.variable()
    return f"(None if ({name} := {value}) is None else {encoded(name)})"


def attribute(path: str, get: Callable[[Any], Any] | None, scope: Scope) -> str:
    """Return source of an expression for the attribute ``path`` of ``value``, or for
    ``get(value)``."""
    if get is None and _is_plain(path):
        return f"value.{path}"
    return f"{scope.bind(get or attrgetter(path))}(value)"


def _is_plain(path: str) -> bool:
    # Use attrgetter for non-ASCII names, which Python normalizes in source.
    return path.isascii() and all(
        name.isidentifier() and not iskeyword(name) for name in path.split(".")
    )


def function(
    parameters: str, lines: Iterable[str], name: str, scope: Scope
) -> Callable[..., Any]:
    """Compile and return a function whose body has these lines."""
    source = "\n    ".join([f"def dump({parameters}):", *lines])
    file = f"<dump of {name} {next(_numbers)}>"
    # Store the source for tracebacks.
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec"), scope.names)
    made: Callable[..., Any] = scope.names["dump"]
    return made
