"""A proof that a regular expression reads its text in a number of steps that is linear in it.

A backtracking matcher tries one path through the pattern after the other. The number of paths
grows faster than the text only if there are two loops, p and q, and a word that can be read in
three ways: from p to p, from p to q and from q to q (Weber and Seidl, 1991: "On the degree of
ambiguity of finite automata"). :func:`ambiguity` looks for such a word in the automaton of a
pattern: one state for each place of the pattern that reads a character.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import product
from math import inf
from typing import Any

# The parser of CPython's re, for which the standard library has no public name.
ops: Any = import_module("re._constants")
parser: Any = import_module("re._parser")

# A repetition with a lower bound than this adds a constant factor and does not count as a loop.
_LOOP_FROM = 256
_COPIES = 2
# Beyond Latin-1 one character stands for all others of its category, and two for those that are
# the same as an ASCII letter with IGNORECASE.
_CHARACTERS = [*map(chr, range(256)), *"\u4e00\u0660\u2003\u20ac\u03bc\u017f\u212a\ud800"]
_SURROGATES = (0xD800, 0xDFFF)
_CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}
_BOUNDARIES = (ops.AT_BOUNDARY, ops.AT_NON_BOUNDARY)
_ASSERTIONS = (ops.AT, ops.ASSERT, ops.ASSERT_NOT)
_ALL = (1 << len(_CHARACTERS)) - 1


@dataclass
class _Part:
    """Part of a pattern: its first and last states, and if it matches the empty text."""

    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    is_empty: bool = True


@dataclass
class _Automaton:
    """States by number: the characters that each reads, and the states that may follow it."""

    reads: list[int] = field(default_factory=list)
    edges: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    possessive: set[int] = field(default_factory=set)
    begins_anywhere: bool = False
    groups: dict[int | None, int] = field(default_factory=dict)
    """Number of repetitions of each group."""
    is_doubled: bool = False
    """True if one text leads from a state to another in two ways, as in nested loops."""

    def state(self, reads: int) -> _Part:
        self.reads.append(reads)
        number = len(self.reads) - 1
        return _Part((number,), (number,), is_empty=False)

    def connect(self, last: Iterable[int], first: Iterable[int]) -> None:
        for before, after in product(last, first):
            read = self.reads[after]
            if before in self.possessive:
                # A possessive loop is only left where its class can't continue.
                read &= ~self.reads[before]
            known = self.edges[before].get(after, 0)
            self.is_doubled |= known & read != 0
            self.edges[before][after] = known | read

    def joined(self, parts: Iterable[_Part]) -> _Part:
        whole = _Part()
        for part in parts:
            self.connect(whole.last, part.first)
            whole = _Part(
                whole.first + part.first if whole.is_empty else whole.first,
                whole.last + part.last if part.is_empty else part.last,
                whole.is_empty and part.is_empty,
            )
        return whole

    def loops(self) -> list[int]:
        return [
            state for state in range(len(self.reads)) if _reaches(self, (state,), {(state,)})
        ]

    def build(self, pattern: Any, flags: int) -> _Part:
        return self.joined(self._item(op, argument, flags) for op, argument in pattern)

    def _item(self, op: Any, argument: Any, flags: int) -> _Part:
        match op:
            case ops.SUBPATTERN:
                number, added, removed, inner = argument
                self.groups[number] = _widest(inner)
                return self.build(inner, (flags | added) & ~removed)
            case ops.ATOMIC_GROUP:
                return self.build(argument, flags)
            case ops.BRANCH:
                parts = [self.build(each, flags) for each in argument[1]]
                self.is_doubled |= sum(part.is_empty for part in parts) > 1
                return _Part(
                    tuple(state for part in parts for state in part.first),
                    tuple(state for part in parts for state in part.last),
                    any(part.is_empty for part in parts),
                )
            case ops.MAX_REPEAT | ops.MIN_REPEAT | ops.POSSESSIVE_REPEAT:
                return self._repeated(op, argument, flags)
            case ops.ASSERT | ops.ASSERT_NOT:
                # A lookahead is read separately, and does not advance the pattern.
                return replace(self.build(argument[1], flags), last=(), is_empty=True)
            case ops.AT if self.begins_anywhere and argument not in _BOUNDARIES:
                # An anchor holds at the first position only, or at the last.
                return _Part() if flags & re.MULTILINE else self.state(0)
            case ops.GROUPREF if self.groups[argument] >= _LOOP_FROM:
                raise NotImplementedError("a group that repeats is referred to")
            case ops.AT | ops.GROUPREF:
                return _Part()
        return self.state(_characters(op, argument, flags))

    def _repeated(self, op: Any, argument: tuple[int, int, Any], flags: int) -> _Part:
        least, most, inner = argument
        if most < _LOOP_FROM and most * _widest(inner, _LOOP_FROM) < _LOOP_FROM:
            needed = min(least, _COPIES)
            # Add one repetition that may be left out, unless their number is fixed.
            counts = range(needed if least == most else min(most, needed + 1 + (not needed)))
            return self.joined(
                replace(part, is_empty=part.is_empty or count >= needed)
                for count, part in enumerate(self.build(inner, flags) for _ in counts)
            )
        parts = [self.build(inner, flags) for _ in range(min(max(least, 1), _COPIES))]
        loop = parts[-1]
        self.connect(loop.last, loop.first)
        if op is ops.POSSESSIVE_REPEAT and loop.first == loop.last:
            self.possessive.update(loop.first)
        parts[-1] = replace(loop, is_empty=loop.is_empty or least == 0)
        return self.joined(parts)


def _widest(pattern: Any, beyond: float = inf) -> int:
    """Return how often the innermost repetitions of a part can be repeated in total, without
    those that continue to ``beyond``."""
    widest = 1
    for op, argument in pattern:
        match op:
            case ops.MAX_REPEAT | ops.MIN_REPEAT | ops.POSSESSIVE_REPEAT:
                most = argument[1] if argument[1] < beyond else 1
                found = most * _widest(argument[2], beyond)
            case ops.SUBPATTERN:
                found = _widest(argument[-1], beyond)
            case ops.ATOMIC_GROUP:
                found = _widest(argument, beyond)
            case ops.BRANCH:
                found = max(_widest(each, beyond) for each in argument[1])
            case _:
                found = 1
        widest = max(widest, found)
    return widest


def _characters(op: Any, argument: Any, flags: int) -> int:
    """Return the characters that one place of a pattern reads, a bit for each."""
    match op:
        case ops.LITERAL | ops.NOT_LITERAL if chr(argument) not in _CHARACTERS:
            raise NotImplementedError(f"{chr(argument)!r} is not among the characters")
        case ops.LITERAL:
            return _matching(re.escape(chr(argument)), flags)
        case ops.NOT_LITERAL:
            return _ALL & ~_matching(re.escape(chr(argument)), flags)
        case ops.ANY:
            return _matching(".", flags)
        case ops.IN:
            found, is_negated = 0, False
            for kind, value in argument:
                match kind:
                    case ops.NEGATE:
                        is_negated = True
                    case ops.RANGE if 255 < value[1] < 0x10FFFF and value != _SURROGATES:
                        raise NotImplementedError(f"the range {value} ends within a category")
                    case ops.RANGE:
                        low, high = map(re.escape, map(chr, value))
                        found |= _matching(f"[{low}-{high}]", flags)
                    case ops.CATEGORY:
                        found |= _matching(_CATEGORIES[value], flags)
                    case _:
                        found |= _characters(kind, value, flags)
            return _ALL & ~found if is_negated else found
    raise NotImplementedError(f"{op} is not known to this proof")


def _matching(pattern: str, flags: int) -> int:
    compiled = re.compile(pattern, flags & (re.IGNORECASE | re.DOTALL | re.ASCII))
    return sum(1 << at for at, each in enumerate(_CHARACTERS) if compiled.fullmatch(each))


def ambiguity(pattern: re.Pattern[Any], method: str) -> str | None:
    """Return a description of two loops that compete for the same characters, if there are any,
    or of what cannot be proven.

    ``method`` is the method that is called: ``fullmatch``, ``match``, or one that tries the
    pattern at every position, such as ``search``.
    """
    text = (
        pattern.pattern
        if isinstance(pattern.pattern, str)
        else pattern.pattern.decode("latin-1")
    )
    flags = pattern.flags if isinstance(pattern.pattern, str) else pattern.flags | re.ASCII
    parsed = parser.parse(text, flags)
    # At the first position, ^ matches.
    methods = {"match", method} - ({"match"} if method == "fullmatch" else set())
    for how in sorted(methods):
        automaton = _Automaton(begins_anywhere=how not in ("fullmatch", "match"))
        try:
            whole = automaton.build(parsed, parsed.state.flags)
        except NotImplementedError as error:
            return f"not proven: {error}"
        if found := _competing(automaton):
            return found
        settled = () if parsed[-1][0] in _ASSERTIONS else whole.last
        if automaton.begins_anywhere and (
            found := _tried_again(automaton, whole.first, settled)
        ):
            return found
    return None


def _competing(automaton: _Automaton) -> str | None:
    if automaton.is_doubled:
        return "nested loops, or two empty alternatives"
    loops = automaton.loops()
    for p, q in product(loops, loops):
        if p == q and _returns(automaton, p):
            return f"there are two ways around the loop at place {p}"
        if p != q and _reaches(automaton, (p, p, q), {(p, q, q)}):
            return f"the loops at places {p} and {q} read the same characters"
    return None


def _tried_again(
    automaton: _Automaton, first: tuple[int, ...], settled: tuple[int, ...]
) -> str | None:
    """Return a loop that rereads the same text from later positions after it failed."""
    start = automaton.state(_ALL)
    automaton.connect(start.last, start.first)
    automaton.connect(start.last, first)
    # If the pattern may end in a state, it has matched, so nothing is tried again.
    for steps in automaton.edges.values():
        for state in settled:
            steps.pop(state, None)
    (begin,) = start.first
    for loop in automaton.loops():
        if loop != begin and _reaches(automaton, (begin, begin, loop), {(begin, loop, loop)}):
            return f"the loop at place {loop} is tried at each position"
    return None


def _returns(automaton: _Automaton, state: int) -> bool:
    """Return true if one word leads from a state to itself in two ways."""
    apart = [pair for pair in _reached(automaton, (state, state)) if pair[0] != pair[1]]
    return any(_reaches(automaton, pair, {(state, state)}) for pair in apart)


def _reaches(
    automaton: _Automaton, start: tuple[int, ...], goals: set[tuple[int, ...]]
) -> bool:
    return any(found in goals for found in _reached(automaton, start))


def _reached(automaton: _Automaton, start: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the states that copies of the automaton reach together, with one word for all."""
    waiting, seen = [start], set[tuple[int, ...]]()
    while waiting:
        choices = (automaton.edges[state].items() for state in waiting.pop())
        for steps in product(*choices):
            read = _ALL
            for _, characters in steps:
                read &= characters
            after = tuple(state for state, _ in steps)
            if read and after not in seen:
                seen.add(after)
                waiting.append(after)
                yield after
