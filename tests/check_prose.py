"""Find sentences that are hard to read: ``python tests/check_prose.py``.

``tox -e style`` runs it.

It reads comments, docstrings and messages of Python files, and the paragraphs of documents. A
sentence that has to stay is listed in ``prose_allowed.txt``, after the reason in a comment.
"""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = (
    "flask_noderpc",
    "tests",
    "benchmarks",
    "example_app",
    "docs",
    "README.md",
    "CHANGES.md",
    "CONTRIBUTING.md",
)
ALLOWED = Path(__file__).with_name("prose_allowed.txt")

# Words at the start of a sentence that refer to something which the sentence does not name.
_VAGUE_START = re.compile(
    r"(Of|Those|That of|Who|Whom|Whose|Whoever|Whatever|What|Itself|Else|Nobody|Neither"
    r"|None of|So many|As many|As long|Each that|All of|Where|Or|And)\b"
)
_PRONOUN = re.compile(r"(It|They|Its|Their|Them)\b")
_RULES = (
    (
        re.compile(r"(?<!there )\b(is|are|was|were) no (?!longer|need|more than|such)\w", re.I),
        'write "is not a …", or name what was expected',
    ),
    (
        re.compile(r"\b(is|are) none\b(?! of)"),
        'write "is missing", "is empty" or "does not exist"',
    ),
    (re.compile(r", of (which|whom)\b"), "make two sentences"),
    (
        re.compile(r"\b(that|those|the same) of (a|an|the|each|all|its|their|another)\b"),
        "repeat the noun",
    ),
    (
        re.compile(
            r"\b(nobody|whoever|whatever|wherever|in vain|by turns|anew|thereof|nevertheless"
            r"|handed on|(gives?|gave) way|stands? (in|alone|beside|there)|(is|was) told"
            r"|so many (as|of))\b"
        ),
        "use the common word for it",
    ),
    (
        re.compile(
            r"(?<!as )\b(it|they|that|those) (is|are|was|were|has|have|does|do|may|can)\.$"
        ),
        "end the sentence with the verb or the thing that is meant",
    ),
)
_SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|CREATE|WHERE|VALUES|FROM|PRAGMA|ALTER)\b")
_NOT_PROSE = re.compile(r"(noqa|type:|pragma|fmt:|ruff:)")
_UNDERLINE = re.compile(r"([-=~^])\1{2,}$")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`*\"'(])")


def main() -> int:
    """Print each sentence that breaks a rule; return the exit status."""
    allowed = {
        line.strip()
        for line in ALLOWED.read_text().splitlines()
        if line.strip() and not line.startswith("#")
    }
    used: set[str] = set()
    count = 0
    for path in _files():
        if path == Path(__file__):
            continue
        for line, is_message, text in _texts(path):
            for number, sentence in enumerate(_SENTENCE_END.split(text)):
                advice = _advice(sentence, is_first=number == 0, is_message=is_message)
                if advice is None:
                    continue
                if sentence in allowed:
                    used.add(sentence)
                    continue
                count += 1
                print(f"{path.relative_to(ROOT)}:{line}: {sentence!r}: {advice}")
    for sentence in sorted(allowed - used):
        count += 1
        print(
            f"{ALLOWED.relative_to(ROOT)}: {sentence!r}: no file has this sentence: remove it"
        )
    return min(count, 1)


def _files() -> Iterator[Path]:
    for place in map(ROOT.joinpath, PLACES):
        if place.is_file():
            yield place
        for folder, folders, names in os.walk(place):
            # These hold the packages of others, or what a build wrote.
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith((".", "_build"))
                and name not in {"node_modules", "target"}
            )
            for name in sorted(names):
                if name.endswith((".py", ".rst", ".md")):
                    yield Path(folder, name)


def _advice(sentence: str, *, is_first: bool, is_message: bool) -> str | None:
    """Return how to mend a sentence, or ``None`` if it breaks no rule."""
    if not is_message and sentence.endswith((".", ":", ";", "?", "!")):
        vague = _VAGUE_START.match(sentence) or (is_first and _PRONOUN.match(sentence))
        if vague:
            return f"begin with the thing that the sentence is about, not with {vague[0]!r}"
    for pattern, advice in _RULES:
        if found := pattern.search(sentence):
            return f"{found[0]!r}: {advice}"
    return None


def _texts(path: Path) -> Iterator[tuple[int, bool, str]]:
    """Yield the texts of a file: first line, true for a message of the program, text."""
    content = path.read_text()
    if path.suffix != ".py":
        yield from _paragraphs(content)
        return
    docstrings = set()
    tree = ast.parse(content)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for item in body if isinstance(body, list) else ():
            if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant):
                docstrings.add(item.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = " ".join(node.value.split())
            is_prose = text.count(" ") >= 2 and not _SQL.search(text)
            if node in docstrings or is_prose:
                yield node.lineno, node not in docstrings, text
    yield from _comments(content)


def _comments(content: str) -> Iterator[tuple[int, bool, str]]:
    first, last, words = 0, 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        text = token.string.lstrip("# ").rstrip()
        if token.type != tokenize.COMMENT or _NOT_PROSE.match(text):
            continue
        line = token.start[0]
        continues = line == last + 1 and token.line.lstrip().startswith("#")
        if words and not continues:
            yield first, False, " ".join(words)
            words = []
        first, last = first if words else line, line
        words.append(text)
    if words:
        yield first, False, " ".join(words)


def _paragraphs(content: str) -> Iterator[tuple[int, bool, str]]:
    """Yield the paragraphs of a document, without headings, code, tables and directives."""
    first, words, in_code = 0, list[str](), False
    for number, line in enumerate([*content.splitlines(), ""], 1):
        is_fence = line.lstrip().startswith("```")
        in_code ^= is_fence
        is_prose = bool(line.strip()) and not (
            in_code or is_fence or re.match(r"    |\t|[|=+#]|-{3}|~{3}|\s*(\.\.|:\w+:)", line)
        )
        if _UNDERLINE.match(line) and len(words) == 1:
            words = []
        if is_prose:
            first = first if words else number
            words.append(line.strip().lstrip("*->#0123456789. "))
        elif words:
            yield first, False, " ".join(words)
            words = []


if __name__ == "__main__":
    sys.exit(main())
