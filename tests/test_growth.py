"""Tests of the check of linear growth, with its own clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, repeat

import pytest

from tests.helpers import growth

SIZE = 400


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a check of work that takes ``seconds`` of its size, with some disturbed runs at
    first."""

    def check(seconds: Callable[[int], float], disturbed: Iterator[float]) -> None:
        monkeypatch.setattr(growth, "_seconds", lambda work, size: work(size) * next(disturbed))
        growth.check_linear(seconds, int, SIZE)

    return check


def test_linear_work_passes(run: Callable[..., None]) -> None:
    run(lambda size: size, repeat(1.0))


def test_linear_work_passes_once_the_machine_is_quiet(run: Callable[..., None]) -> None:
    run(lambda size: size, chain([1.0, 9.0, 1.0, 9.0], repeat(1.0)))


def test_quadratic_work_is_refused(run: Callable[..., None]) -> None:
    with pytest.raises(AssertionError, match=r"4 times as much took 16\.0 times"):
        run(lambda size: size**2, repeat(1.0))
