"""Cost of a request, for a host's rate limits."""

from __future__ import annotations

from flask import request
from werkzeug.exceptions import RequestEntityTooLarge

from .. import jsoncodec

# Maximum bytes that are read of a body.
_MAX_BYTES = 5 * 1024 * 1024


def request_cost() -> int:
    """Return the number of calls in the current request, for a host's rate limits.

    One that can't be read counts as one.
    """
    given = request.max_content_length
    # Whatever the method is: CometBFT and geth also answer a body that comes by GET.
    request.max_content_length = _MAX_BYTES if given is None else given
    try:
        return max(1, len(jsoncodec.decode(request.get_data(), list[jsoncodec.Raw])))
    except (jsoncodec.NotJSON, RequestEntityTooLarge):
        return 1
    finally:
        # The host's views may take more.
        request.max_content_length = given
