"""Admission of requests to the EVM layer, by geth's rules: rpc/http.go."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus

from ...errors import NodeRPCError, OriginRefused, ParseError
from ...web.rules.admit import (
    ORIGIN_DENIED,
    Admission,
    Admitted,
    Policy,
    Refusal,
    body_limit,
    coding_of,
    permissions_of,
)
from ...web.rules.head import HTML, Head, Response, plain_text

_TYPES = ("application/json", "application/json-rpc", "application/jsonrequest")
_NO_SNIFF = "X-Content-Type-Options", "nosniff"


def admission(max_body: int) -> Admission:
    """Return the admission rules for bodies of at most ``max_body`` bytes."""
    return Admission(partial(_admit, max_body), signs=True, unreadable=lambda _: _unreadable())


def _unreadable() -> NodeRPCError:
    # geth reads the body up to the limit, and then fails to parse it.
    return ParseError("parse error")


def _admit(max_body: int, policy: Policy, head: Head) -> Refusal | Admitted:
    size = head.content_length or 0
    if head.method == "GET" and not size and not head.fields.get("QUERY_STRING"):
        # geth: an empty GET is the health check of a load balancer.
        return Refusal(Response(HTTPStatus.OK, [HTML], b""))
    response = _refused(head, size, max_body)
    if response is not None:
        return Refusal(response, max_body=max_body)
    limit = body_limit(max_body, head)
    if coding_of(head) or size > limit:
        return Refusal(error=_unreadable(), max_body=limit)
    permissions = permissions_of(policy, head)
    if not permissions.may_read and head.has_body:
        return Refusal(error=OriginRefused(ORIGIN_DENIED), max_body=limit)
    return Admitted(policy, head, permissions, limit)


def _refused(head: Head, size: int, limit: int) -> Response | None:
    if head.method in ("PUT", "DELETE"):
        return plain_text("method not allowed", HTTPStatus.METHOD_NOT_ALLOWED, _NO_SNIFF)
    if size > limit:
        return plain_text(
            f"content length too large ({size}>{limit}); raise NODERPC_EVM_MAX_BODY_BYTES",
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            _NO_SNIFF,
        )
    if head.mimetype not in _TYPES:
        return plain_text(
            "invalid content type, only application/json is supported",
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            _NO_SNIFF,
        )
    return None
