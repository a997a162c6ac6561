"""Random streams of HTTP requests: valid ones, those that readers disagree on, and noise."""

from __future__ import annotations

from random import Random

_METHODS = (
    (b"GET",) * 6
    + (b"POST",) * 6
    + (
        b"HEAD",
        b"OPTIONS",
        b"PUT",
        b"BREW",
        b"get",
        b"G ET",
        b"",
        b"M-SEARCH",
        b"CONNECT",
        b"PRI",
    )
)
_TARGETS = (b"/",) * 8 + (
    *(b"/a?b=c", b"/a?", b"/?a?b", b"//a", b"/%41", b"/%zz", b"/a#b", b"*", b"", b"a"),
    *(
        b"http://b/c",
        b"HTTP://b",
        b"https://b:1/?c",
        b"http://b:x/",
        b"http://",
        b"ftp://b/",
        b"http:///c",
    ),
    *(
        b"http://%61/",
        b"http://[/",
        b"http://]/",
        b"http://[::1]:1/",
        b"http://a_b/",
        b"http:a",
    ),
    *(b"/\xe4", b"/\x00", b"/\x7f", b"/a b", b"b:1", b"/a\tb", b"http://b\\c/"),
)
_VERSIONS = (b"HTTP/1.1",) * 16 + (
    *(
        b"HTTP/1.0",
        b"HTTP/1.0",
        b"HTTP/1.2",
        b"HTTP/2.0",
        b"HTTP/0.9",
        b"http/1.1",
        b"HTTP/1.10",
    ),
    *(b"", b"HTTP/1,1", b"RTSP/1.0", b"HTTP/ 1.1", b"HTTP/11"),
)
_GAPS = (b" ",) * 60 + (b"  ", b"\t", b"", b"\x0b")
_ENDS = (b"\r\n",) * 80 + (b"\n", b"\r\r\n", b"\r", b"\n\r", b" \r\n")
_HOSTS = (b"Host: a",) * 40 + (
    *(
        b"host:a",
        b"HOST:\t a ",
        b"Host:",
        b"Host: a, b",
        b"Host : a",
        b" Host: a",
        b"Host: \xe4",
    ),
    *(
        b"Host: a\r\nHost: b",
        b"Host: a\r\nHost: a",
        b"X: b",
        b"Host: a b",
        b"Host: a/b",
        b"Host: [::1]:1",
    ),
)
_HEADERS = (
    *(
        b"X: a",
        b"X:a",
        b"X: \ta\t ",
        b"X:",
        b"X: a\r\n b",
        b"X: a\r\n\tb",
        b"X : a",
        b"X\t: a",
        b": a",
    ),
    *(
        b"X",
        b"X: \xe4",
        b"X: \x00",
        b"X: \x01",
        b"X: a\x7f",
        b"X\x00: a",
        b"X(: a",
        b"\xe4: a",
        b"X_a: 1",
    ),
    *(
        b"X: a\rb",
        b"X: a\nb: c",
        b"x: a\r\nX: b",
        b"X: " + b"a" * 300,
        b"X: a: b",
        b"X:  ",
        b"X: a  b",
    ),
    *(
        b"Connection: close",
        b"Connection: keep-alive",
        b"Connection: Close, x",
        b"Connection: x,close",
    ),
    *(
        b"Connection: upgrade\r\nUpgrade: h2c",
        b"Connection: Upgrade\r\nUpgrade: websocket",
        b"Upgrade: a",
    ),
    *(
        b"Expect: 100-continue",
        b"Expect: a",
        b"Expect: 100-Continue",
        b"Expect:",
        b"Trailer: X",
    ),
    *(b"Cookie: a\r\nCookie: b", b"Content-Type: a/b", b"Connection: a\r\nConnection: close"),
)
_LENGTHS = (
    *(b"%d",) * 12,
    *(
        b"0%d",
        b"+%d",
        b"-%d",
        b" %d ",
        b"%d, %d",
        b"%d,",
        b"0x%d",
        b"%d\x0b",
        b"%d.0",
        b"%d %d",
        b"",
    ),
    *(
        b"%d\r\nContent-Length: %d",
        b"1%d",
        b"99999999999999999999%d",
        b"00000000000000000000%d",
        b"%d\r\nContent-Length: 1%d",
    ),
)
_CODINGS = (b"chunked",) * 12 + (
    *(
        b"Chunked",
        b"\tchunked ",
        b"identity",
        b"gzip",
        b"gzip, chunked",
        b"chunked, gzip",
        b"chunked,",
    ),
    *(
        b"chunked\r\nTransfer-Encoding: chunked",
        b"",
        b"chunked;a",
        b"xchunked",
        b"\x0bchunked",
        b"chunked, chunked",
    ),
    *(b"chunked\r\nContent-Length: 3", b"identity\r\nContent-Length: 3"),
)
_SIZES = (b"%x",) * 16 + (
    *(
        b"%X",
        b"0%x",
        b"00000000000000000%x",
        b"%x;a=b",
        b"%x ;a",
        b'%x; a="b"',
        b"%x ",
        b" %x",
        b"+%x",
        b"-%x",
    ),
    *(
        b"0x%x",
        b"%x\t",
        b"%x;" + b"a" * 200,
        b"%x;\x00",
        b"%x;a\nb",
        b"f%x",
        b"%x;\xe4",
        b"fffffffffffffffff%x",
    ),
)
_TRAILERS = (b"",) * 12 + (
    b"X: a\r\n",
    b"X\r\n",
    b"X: \x00\r\n",
    b"X: a\n",
    b" X: a\r\n",
    b"Content-Length: 9\r\n",
)
_NOISE = (
    *(
        b"\r",
        b"\n",
        b"\r\n",
        b" ",
        b"\t",
        b"\x00",
        b":",
        b",",
        b";",
        b"0",
        b"\xff",
        b"\x0b",
        b"\x80",
        b"/",
    ),
    *(
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"Content-Length: 1\r\n",
        b"Transfer-Encoding: chunked\r\n",
    ),
)


def stream(random: Random) -> bytes:
    """Return the bytes of one connection."""
    parts = [_request(random) for _ in range(random.choice((1, 1, 2, 2, 3)))]
    # Some clients send an empty line behind a body.
    whole = random.choice((b"",) * 12 + (b"\r\n", b"\n", b"\r\n\r\n", b"\r")).join(parts)
    for _ in range(random.choice((0,) * 8 + (1, 1, 2))):
        at = random.randrange(len(whole) + 1)
        whole = whole[:at] + random.choice(_NOISE) + whole[at + random.choice((0, 1)) :]
    return whole[: random.randrange(len(whole) + 1)] if random.random() < 0.05 else whole


def _request(random: Random) -> bytes:
    pick = random.choice
    if random.random() < 0.8:
        # Use a valid line, so that the headers are read.
        line = pick((b"GET", b"POST", b"POST", b"PUT")) + b" / HTTP/1.1"
    else:
        line = pick(_METHODS) + pick(_GAPS) + pick(_TARGETS) + pick(_GAPS) + pick(_VERSIONS)
    headers = [pick(_HOSTS), *(pick(_HEADERS) for _ in range(pick((0, 0, 0, 1, 1, 2))))]
    body, framing = _body(random)
    headers += framing
    random.shuffle(headers)
    return b"".join(each + pick(_ENDS) for each in (line, *headers, b"")) + body


def _body(random: Random) -> tuple[bytes, list[bytes]]:
    content = random.choice((b"", b"abc", b"a\r\nb", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
    kind = random.random()
    if kind < 0.4:
        return b"", []
    if kind < 0.7:
        pattern = random.choice(_LENGTHS)
        count = pattern.count(b"%d")
        return content, [b"Content-Length: " + pattern % ((len(content),) * count)]
    return _chunks(random, content), [b"Transfer-Encoding: " + random.choice(_CODINGS)]


def _chunks(random: Random, content: bytes) -> bytes:
    parts, pick = [content] if content else [], random.choice
    if len(content) > 2:
        parts = [content[:2], content[2:]]
    end = (b"\r\n",) * 80 + (b"\n", b"", b"\r", b"\r\n\r\n", b"a\r\n")
    chunks = [pick(_SIZES) % len(part) + pick(end) + part + pick(end) for part in parts]
    last = pick((b"0",) * 12 + (b"00", b"0;a", b"-0", b"", b"0 ", b"000000000000000000"))
    return b"".join(chunks) + last + pick(end) + pick(_TRAILERS) + pick(end)
