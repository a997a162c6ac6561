"""Tests that the server reads requests as Go's net/http and Node's llhttp do, except for listed
reasons.

If two servers see different ends of a request, a client can smuggle another request past the
first server.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random

import pytest

from ..helpers.require import require_program, skip_or_fail
from .conftest import GO
from .http_readers import Go, Seen, llhttp, ours
from .http_streams import stream

IS_LONG = os.environ.get("NODERPC_CAMPAIGN") == "long"
STREAMS = 5_000_000 if IS_LONG else 100_000
"""Number of streams in a run, which takes about a minute, or half an hour in the long
campaign."""

# Reasons why one reader accepts a request that the other refuses, each with a pattern of the
# request's head. Requests that both accept must be equal.
_NAME = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HOST = rb"[!$%&'()*+,.:;=\[\]_~0-9A-Za-z-]*"
_HOST_OF_URL = rb"(?:\[[0-9A-Fa-f:.]+\](?::[0-9]*)?|[!$&'()*+,.:;=_~0-9A-Za-z-]+)[/? ]"
STRICTER_THAN_GO = {
    "a target is a path or a URL of http": rb"\A\S* (?!/|(?i:https?)://%b)" % _HOST_OF_URL,
    "CONNECT asks for a tunnel": rb"\ACONNECT",
    "HTTP/1.0 and 1.1 are the versions": rb"\A(?![^\n]* HTTP/1\.[01]\r?\n)",
    "HEAD has no body": rb"(?is)\AHEAD .*\ncontent-length:",
    "no line of a head is folded": rb"\n[ \t]",
    "only one header says where the body ends": (
        rb"(?is)\n(content-length|transfer-encoding):.*\n(content-length|transfer-encoding):"
    ),
    "one empty line before a request is ignored, and nothing else": (
        rb"\A(?:\r?\n\r?\n|\r?\n?\r(?!\n))"
    ),
    "a length has at most 19 digits": rb"(?i)\ncontent-length:[ \t]*\d{20}",
    "HTTP/1.0 has no transfer codings": (
        rb"(?is)\A[^\n]* HTTP/1\.0\r?(?=\n).*\ntransfer-encoding:"
    ),
}
LAXER_THAN_BOTH = {
    "an empty line before a request is ignored": rb"\A\r?\n",
    "the app decides about a wrong escape in a path": rb"\A\S+ \S*%(?![0-9A-Fa-f]{2})",
}
LAXER_THAN_GO = LAXER_THAN_BOTH | {
    "the app decides about a wrong port in a URL": rb"\A\S+ (?i:https?)://[^/ ]*:\d*[^\d/? ]",
}
STRICTER_THAN_LLHTTP = STRICTER_THAN_GO | {
    "a request of HTTP/1.1 has one host": rb"(?is)\A(?!.*\nhost:)|\nhost:.*\nhost:",
    "a host is a name or an address": rb"(?i)\nhost:[ \t]*(?!%b[ \t]*\r?\n)" % _HOST,
    "only 100-continue can be expected": rb"(?i)\nexpect:[ \t]*[^1\r\n]",
    "chunked is the only transfer coding": (
        rb"(?i)\ntransfer-encoding:[ \t]*(?!chunked[ \t]*\r?\n)"
    ),
    "one blank is between the parts of a request line": rb"\A[^\n]*  ",
}
LAXER_THAN_LLHTTP = LAXER_THAN_BOTH | {
    "a line may end with LF": rb"[^\r]\n",
    "an app may have methods of its own": rb"\A(?!(?:GET|POST|HEAD|OPTIONS|PUT|M-SEARCH) )",
    "a path may have bytes beyond ASCII": rb"\A\S+ [^\n ]*[\x80-\xff]",
}
# Reasons why one reader accepts the body of a request and the other does not.
BODY_STRICTER = {
    "no blank is behind the size of a chunk": rb"[0-9A-Fa-f][ \t]+(?:;|\r?\n)",
    "lines of a body in chunks end with CRLF": rb"[^\r]\n",
    "a trailer is a header": rb"(?:\A|\n)0+(?:;[^\n]*)?\r\n(?!\r\n)",
    "the size of a chunk has at most 16 digits": rb"[0-9A-Fa-f]{17}",
}
BODY_LAXER_THAN_LLHTTP = {
    "the extension of a chunk is any text": rb"[0-9A-Fa-f][ \t]*;[^\r\n]*\r\n",
    "a trailer may have any name": rb"(?i)\n(?:content-length|transfer-encoding):",
}
TAB = rb"(?i)\ntransfer-encoding:[^\n]*\t[ \t]*\r?\n"
UPGRADED = rb"(?i)\nupgrade:"
"""llhttp leaves the bytes behind the head of an upgrade to its caller."""


def _parts(rest: bytes) -> tuple[bytes, bytes]:
    """Return head and body of the request that begins here."""
    found = re.match(rb"(?s)[\r\n]*.*?\n\r?\n", rest)
    at = found.end() if found else len(rest)
    return rest[:at], rest[at:]


def _reason(rows: Mapping[str, bytes], text: bytes) -> str | None:
    # An empty line may come before a request; this has a separate reason.
    texts = text, re.sub(rb"\A\r?\n", b"", text)
    return next(
        (
            reason
            for reason, pattern in rows.items()
            if any(re.search(pattern, each) for each in texts)
        ),
        None,
    )


def explanation(mine: Seen, their: Seen, sent: bytes, name: str) -> str | None:
    """Return why two readers see different requests; raise if nothing explains it."""
    same = 0
    while mine.requests[same : same + 1] == their.requests[same : same + 1]:
        if same == len(mine.requests):
            return None
        same += 1
    head, body = _parts(sent[mine.begins[same] :])
    own, other = mine.requests[same : same + 1], their.requests[same : same + 1]
    if name == "llhttp" and re.search(UPGRADED, sent[: mine.begins[same]] + head):
        return "an upgrade"
    before = mine.requests[same - 1].headers if same else {}
    if "close" in " ".join(before.get("connection", ())).lower():
        # Go finds the word anywhere in a value, and with HTTP/1.0 keep-alive has precedence.
        return "Connection: close is a list of options, and wins"
    if name == "llhttp" and re.search(TAB, head):
        return "a tab behind a value does not belong to it"
    stricter, laxer, body_laxer = (
        (STRICTER_THAN_GO, LAXER_THAN_GO, {})
        if name == "Go"
        else (STRICTER_THAN_LLHTTP, LAXER_THAN_LLHTTP, BODY_LAXER_THAN_LLHTTP)
    )
    if not own:
        reason = _reason(stricter, head)
    elif not other:
        reason = _reason(laxer, head)
    elif own[0].is_cut and not other[0].is_cut:
        reason = _reason(BODY_STRICTER, body)
    elif other[0].is_cut and not own[0].is_cut:
        reason = _reason(body_laxer, body)
    else:
        reason = None
    assert reason, f"{name}: {own} and {other} at {mine.begins[same]} of {sent!r}"
    return reason


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Go]:
    program = tmp_path_factory.mktemp("go") / "readhttp"
    command = [require_program("go"), "build", "-buildvcs=false", "-o", str(program)]
    built = subprocess.run([*command, "./readhttp"], cwd=GO, capture_output=True, text=True)
    if built.returncode != 0:
        skip_or_fail(f"the reader of net/http could not be built: {built.stderr[-2000:]}")
    with Go(program) as found:
        yield found


def test_every_difference_to_other_readers_has_a_reason(go: Go) -> None:
    random = Random(None if IS_LONG else 1)
    reasons: Counter[tuple[str, str]] = Counter()
    equal: Counter[str] = Counter()
    for _ in range(STREAMS):
        sent = stream(random)
        mine = ours(sent)
        for name, their in (("Go", go.read(sent)), ("llhttp", llhttp(sent))):
            reason = explanation(mine, their, sent, name)
            if reason:
                reasons[name, reason] += 1
            else:
                equal[name] += len(mine.requests)

    # Enough streams are valid, and each reason is still needed.
    assert equal["Go"] > STREAMS // 5
    assert equal["llhttp"] > STREAMS // 5
    known = (
        ("Go", STRICTER_THAN_GO | LAXER_THAN_GO),
        (
            "llhttp",
            STRICTER_THAN_LLHTTP | LAXER_THAN_LLHTTP | BODY_LAXER_THAN_LLHTTP,
        ),
    )
    unused = {(name, row) for name, rows in known for row in rows} - reasons.keys()
    assert unused <= {("llhttp", "no line of a head is folded")}
