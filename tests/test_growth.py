"""The check of growth itself: what it accepts and refuses."""

from __future__ import annotations

import pytest

from tests.helpers.growth import check_linear


def _linear(data: bytes) -> int:
    return sum(1 for _ in data)


def _quadratic(data: bytes) -> None:
    while data:
        data = data[1:]


def test_linear_work_passes() -> None:
    check_linear(_linear, bytes, 400_000)


def test_quadratic_work_is_refused() -> None:
    with pytest.raises(AssertionError, match="4 times as much took"):
        check_linear(_quadratic, bytes, 120_000)
