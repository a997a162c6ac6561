"""Heads of answers: their status lines and headers, in the version of the request."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from gevent.pywsgi import WSGIHandler
from werkzeug.http import HTTP_STATUS_CODES


class HeadWriter(WSGIHandler):  # type: ignore[misc]  # gevent has no types
    """Writes statuses as RFC 9110 does, and answers HTTP/1.0 in HTTP/1.0."""

    def start_response(self, status: str, headers: Any, exc_info: Any = None) -> Any:
        """Begin an answer, with the phrase of its status as it is written in RFC 9110."""
        return super().start_response(_canonical(status), headers, exc_info)

    def finalize_headers(self) -> None:
        """Close behind an answer of HTTP/1.0 that has no length."""
        super().finalize_headers()
        names = {name.lower() for name, _ in self.response_headers}
        has_end = b"content-length" in names or self.code in (204, 304)
        if self.request_version == "HTTP/1.0" and not has_end:
            self.close_connection = True

    def _write_with_headers(self, data: bytes) -> None:
        # gevent answers any version with 1.1.
        self.headers_sent = True
        self.finalize_headers()
        version = b"HTTP/1.0" if self.request_version == "HTTP/1.0" else b"HTTP/1.1"
        lines = [b"%b %b" % (version, self.status)]
        lines += [b"%b: %b" % header for header in self.response_headers]
        self._sendall(b"\r\n".join((*lines, b"", b"")))
        self._write(data)


@lru_cache(maxsize=128)
def _canonical(status: str) -> str:
    code, _, phrase = status.partition(" ")
    known = HTTP_STATUS_CODES.get(int(code), "")
    return f"{code} {known}" if phrase == known.upper() else status
