"""Tests that every regular expression of the package takes linear time for every text."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import flask_noderpc
from flask_noderpc.cosmos.rest.routes import Route
from flask_noderpc.protocol.comet.genesis.kinds import Integer, Time
from tests.helpers.backtracking import ambiguity

ROOT = Path(flask_noderpc.__file__).parent
_METHODS = ("fullmatch", "match", "search", "finditer", "findall", "sub", "split")
# Patterns that only read texts of the package or of the host's app, and never a client's.
_OWN_TEXTS = {
    "postgres.connection._ADD": "SQL statements of the package",
    "postgres.connection._TOKENS": "SQL statements of the package",
    "protocol.protobuf._MESSAGE": "the table of messages in the same module",
    "protocol.protobuf._FIELD": "the table of messages in the same module",
    "web.rule_conflicts._VARIABLE": "URL rules of the host's app",
}
_BOTH = (False, True)
_KINDS: tuple[Integer | Time, ...] = (
    *(Integer(is_number=number, is_unsigned=sign) for number in _BOTH for sign in _BOTH),
    *(Time(has_offset=has_offset) for has_offset in _BOTH),
)


def _modules() -> Iterator[tuple[str, str]]:
    """Yield the names of the modules that use ``re``, and their texts."""
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        if re.search(r"^import re$", text, re.MULTILINE):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__"), text


def _in(value: object) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns in a module's variable."""
    if type(value) is re.Pattern:
        yield value
    elif type(value) is dict:
        for each in value.values():
            yield from _in(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _in(each)
    elif isinstance(value, Route):
        yield value.pattern


def _uses(name: str, text: str) -> set[str]:
    """Return the methods of a pattern that a module calls; all methods for a public one."""
    found = set(re.findall(rf"\b{name}(?:\[\w+\])?\.(\w+)\(", text))
    return found & set(_METHODS) or set(_METHODS)


@cache
def _patterns() -> dict[str, tuple[re.Pattern[Any], set[str]]]:
    found = {}
    for module, text in _modules():
        if module.startswith("postgres.") and find_spec("psycopg") is None:
            # The module needs an extra, and its patterns only read statements of the package.
            continue
        for name, value in vars(importlib.import_module(f"flask_noderpc.{module}")).items():
            for number, pattern in enumerate(_in(value)):
                label = f"{module}.{name}" + (f"[{number}]" if number else "")
                found[label] = pattern, _uses(name, text)
    for number, kind in enumerate(_KINDS):
        found[f"protocol.comet.genesis.kinds[{number}]"] = kind._form, {"fullmatch"}
    return found


def test_every_pattern_is_linear() -> None:
    found = _patterns()
    assert len(found) > 60
    ambiguous = {
        f"{name}.{method}": reason
        for name, (pattern, methods) in found.items()
        for method in sorted(methods)
        if name not in _OWN_TEXTS and (reason := ambiguity(pattern, method))
    }
    assert ambiguous == {}


def test_every_exception_is_needed() -> None:
    for name in _OWN_TEXTS:
        if name not in _patterns():
            assert name.startswith("postgres.")
            continue
        pattern, methods = _patterns()[name]
        assert any(ambiguity(pattern, method) for method in methods), name


# Modules with functions that compile patterns; those patterns are checked, too.
_COMPILE_IN_FUNCTIONS = {"cosmos.rest.routes", "protocol.comet.genesis.kinds"}


def _calls(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield names and lines of the functions of ``re`` that are called."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
        ):
            yield node.func.attr, node.lineno


def test_no_pattern_is_hidden_in_a_call() -> None:
    calls = [
        f"{module}:{line}"
        for module, text in _modules()
        for name, line in _calls(ast.parse(text))
        if name in _METHODS
    ]
    assert calls == []


def test_patterns_that_functions_compile_are_known() -> None:
    found = {
        module
        for module, text in _modules()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and any(name == "compile" for name, _ in _calls(node))
    }
    assert found == _COMPILE_IN_FUNCTIONS
    assert {
        "cosmos.rest.routes.ROUTES",
        "protocol.comet.genesis.kinds[0]",
    } <= _patterns().keys()


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"([!-~]+):[ \t]*([^\n]*?)[ \t]*\n", "fullmatch"),
        (r"(a+)*b", "match"),
        (r"(a|a)*b", "match"),
        (r"(a|ab|b)*c", "fullmatch"),
        (r"(x+x+)+y", "search"),
        (r"(?:a{1,300})*b", "match"),
        (r"[0-9]+\.?[0-9]*", "fullmatch"),
        (r"(.*)\[(.*)\]", "fullmatch"),
        (r"a*b", "search"),
        (r"\s+$", "sub"),
        (r"a+(?!b)", "finditer"),
        (r"(?=a*a*b)c", "match"),
        (r"(?=a*b)a", "finditer"),
        (r"(?:a(?!a*b))*c", "match"),
        (r"(?m)^\s*x", "search"),
        (r"(?:a{0,200}){0,200}b", "match"),
        (r"(a*)\1b", "match"),
        (r"(?:a{1,200})*b", "match"),
        (r"\d+[^\x00-\xff]+z", "fullmatch"),
    ],
)
def test_the_proof_finds_loops_that_compete(pattern: str, method: str) -> None:
    assert ambiguity(re.compile(pattern), method)


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"([!-~]++):([^\n]*+)\n", "fullmatch"),
        (r"[0-9]++\.?[0-9]*+", "fullmatch"),
        (r'"(?:[^"\\]++|\\.)*+"?', "finditer"),
        (r"(?:ab?)*c", "match"),
        (r"(?:[0-9a-f]{2})*z", "match"),
        (r"a*b", "fullmatch"),
        (r"a+", "findall"),
        (r"^\s*x", "search"),
        (r"(?i)\bhttps?://[a-z]{1,63}", "search"),
    ],
)
def test_the_proof_lets_linear_patterns_pass(pattern: str, method: str) -> None:
    assert ambiguity(re.compile(pattern), method) is None
