"""The differences that remain, each with its reason; docs/dialects.rst lists them, too."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .compare import Difference


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason for a difference in some responses."""

    request: str
    where: str
    why: str
    versions: str = ".*"
    only_failures: bool = False

    def covers(self, version: str, one: Difference) -> bool:
        """Return true if this is the reason for a difference."""
        return bool(
            re.fullmatch(self.versions, version)
            and re.fullmatch(self.request, one.request)
            and re.fullmatch(self.where, one.where)
            and (one.is_of_failure or not self.only_failures)
        )


_KEPT = "headers.Cache-Control"
_OLD = r"0\.3[47].*"

# Queries that the grammar of 0.34 and 0.37 accepts or refuses, unlike ours.
_OTHER_QUERIES = (
    "",
    " ",
    "5=5",
    "a/b='c'",
    "app.key='x",
    "tm.event = 'NewBlock' and x=1",
    "tx.height",
    "tx.height=",
    "tx.height=05",
    "tx.height=1 OR tx.height=2",
    "tx.height>'x'",
    "tx.height>=1.5",
    "x > DATE 2020-13-01",
    "x AND y",
    "x" * 513,
)

REASONS = (
    Reason(
        "(uri|post) (tx|abci_info|blockchain)( .*)?",
        _KEPT,
        "fixed: the answer may change, so it may not be cached",
    ),
    Reason(
        "(?!.*<block 3>)(uri|post) (block|header)_by_hash( .*)?",
        _KEPT,
        "fixed: an unknown hash may belong to a later block",
    ),
    Reason("event .*", "text", "the keys of events have no order in Go"),
    # The latest height has two digits in each chain.
    Reason(
        r'(uri commit height=|post commit {"height": ")\d\d+.*',
        _KEPT,
        "fixed: a commit that is not canonical may change",
    ),
    Reason("(post|body) .*", _KEPT, "fixed: an error is never kept", only_failures=True),
    Reason(
        "(uri|post) status.*",
        r"body\.result\.node_info\.version",
        "tag v0.40.0 that go install built says 0.39.0",
        r"0\.40.*",
    ),
    Reason(
        "(uri|post) abci_query.*",
        r"body\.result\.response\.key",
        "an absent key and an empty one are the same here",
    ),
    Reason('uri (block height|validators page)="', "body.error.*", "fixed: Go panics"),
    Reason(
        "uri genesis_chunked chunk=1",
        r"body\.error\.data",
        "fixed: as many chunks are named as there are",
    ),
    Reason(
        r"(uri|post) (tx|block)_search( \{\}| null)?",
        "body.*",
        "queries are those of 0.38 in every dialect: the words for an empty one are its own",
        _OLD,
    ),
    *(
        Reason(
            f'uri (tx|block)_search query="{re.escape(query)}"',
            "status|body.*",
            "queries are those of 0.38 in every dialect",
            _OLD,
        )
        for query in _OTHER_QUERIES
    ),
    Reason(
        r'post tx_search \{"query": "tx.height.*\\u00.*',
        "body.*",
        "queries are those of 0.38 in every dialect: other blanks",
        _OLD,
    ),
    Reason(
        "uri tx_search query=\"app.creator='Cosmoshi' AND app.key='name'\"",
        "body.*",
        "conditions hold within one event, as since 0.37",
        r"0\.34.*",
    ),
    Reason(
        "websocket subscribe",
        r"replies\[[235678]\]\..*|replies\[11\]\..*",
        "queries are those of 0.38 in every dialect, and are the same in their normal form",
        _OLD,
    ),
    Reason(
        "body eleven in a list",
        "body",
        "fixed: a batch has a limit in every dialect",
        _OLD,
    ),
    Reason(
        ".* tx_search .*(CONTAINS|EXISTS|tx.hash).*",
        r"body\.result\.total_count",
        "fixed: transactions are counted, not hits, and one found by its hash is one",
        r"1\.0.*",
    ),
    Reason(
        ".*(OR|and) .*|websocket subscribe",
        r"(body|replies\[8\])\.error\.data",
        "fixed: a token is named, where CometBFT gives its number",
    ),
    Reason(
        ".*DATE 2020-13-01.*",
        r"body\.error\.data",
        "the reason why a date is invalid is in our words",
    ),
    Reason(
        'uri block_search query="x{513}"',
        r"body\.error\.data",
        "block_search has the same limit as tx_search",
    ),
    Reason("body (large|broken) id", r"body\.id", "fixed: an id is echoed digit for digit"),
    Reason("body (list|object) id", r"body\.error\.data", "Go's print of the id is not copied"),
    Reason(
        "body no params where there are some",
        "status|body.*",
        "fixed: CometBFT panics; here nothing is given then",
    ),
    Reason(
        "body upper case members",
        "headers.*|body.*",
        "fixed: members have the names of JSON-RPC, and no others",
    ),
    Reason(
        "body (eleven in a list|too large)",
        "headers.X-Server-Time",
        "all answers have the header",
    ),
    Reason(
        "uri (dial_seeds|dial_peers|unsafe_flush_mempool|nosuch)|path .*|a call under v1"
        "|websocket without a handshake",
        "headers.*|body",
        "a path without a route is the app's, and so is its error page; the status is the same",
    ),
    Reason(
        "uri (header|header_by_hash)( .*)?",
        "headers.*|body",
        "no route of 0.34, so the page of error is the host's",
        r"0\.34.*",
    ),
    Reason(
        "(uri|post) (dump_)?consensus_state( .*)?",
        r".*\.(height/round/step|step|height_vote_set|votes|commit_time)",
        "no round is shown before its block: a real node that waits for transactions has"
        " begun it, and knows when it has seen the last commit",
    ),
    Reason(
        "event NewRound",
        r".*\.value\.height",
        "a round's events are sent with its block; a real node has begun the round before",
    ),
    Reason(
        "event Vote",
        r".*\.Vote\.(type|timestamp|signature)",
        "the votes that are sent are in the commit: precommits",
    ),
)


def reason(version: str, one: Difference) -> Reason | None:
    """Return the first reason that covers a difference."""
    return next((known for known in REASONS if known.covers(version, one)), None)
