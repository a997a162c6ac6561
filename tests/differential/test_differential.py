"""Our responses, compared with recordings of real nodes of each version."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from . import explained, run
from .compare import Difference, differences
from .http_client import Reply
from .sides import VERSIONS, Version, ours

Compare = Callable[[Version], list[Difference]]


@pytest.fixture(scope="module")
def compare(tmp_path_factory: pytest.TempPathFactory) -> Compare:
    """Return a function that gives the differences of a version, computed once."""

    @cache
    def compared(version: Version) -> list[Difference]:
        folder = tmp_path_factory.mktemp(version.name)
        files, theirs = run.read(version)
        home = folder / "home"
        (home / "config").mkdir(parents=True)
        for name, content in files.items():
            (home / "config" / name).write_text(content)
        with ours(home, folder / "ours", version) as side:
            own = run.hear(side, version)
        return run.all_differences(theirs, own)

    return compared


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
def test_no_answer_differs_without_a_reason(version: Version, compare: Compare) -> None:
    found = compare(version)

    unexplained = [str(one) for one in found if explained.reason(version.name, one) is None]
    assert unexplained == []


def test_every_reason_is_needed(compare: Compare) -> None:
    needed = {
        explained.reason(version.name, one)
        for version in VERSIONS.values()
        for one in compare(version)
    }

    assert [reason for reason in explained.REASONS if reason not in needed] == []


def test_a_difference_without_a_reason_is_found() -> None:
    real, ours = Reply(200, body='{"a":[1,"2"]}'), Reply(500, body='{"a":[1,2],"b":null}')

    found = list(differences("uri block", real, ours))

    assert [one.where for one in found] == ["status", "body.a[1]", "body.b"]
    assert {explained.reason("0.38.25", one) for one in found} == {None}


@pytest.mark.parametrize(
    "request_name",
    ['post block {"height": "2"}', "uri commit height=2", "uri block_by_hash hash=0x<block 3>"],
)
def test_a_changed_cache_control_is_reported(request_name: str) -> None:
    kept = Reply(200, {"Cache-Control": "public, max-age=86400"}, '{"result":{}}')

    (found,) = differences(request_name, kept, Reply(200, {}, '{"result":{}}'))

    assert explained.reason("0.38.25", found) is None
