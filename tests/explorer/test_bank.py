"""Tests of the explorer's pages and files of a chain of the application ``bank``: decoded
messages, balances, and the history of an account."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta

import pytest
from flask.testing import FlaskClient

from flask_noderpc.cosmos.facts import account_facts
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.cosmos.tx_facts import tx_facts, tx_line
from flask_noderpc.domain.abci import QueryResult
from flask_noderpc.domain.facts import Fact, in_words
from flask_noderpc.explorer import history
from flask_noderpc.explorer.node import Node
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.protocol.protobuf import blob, integer, message, string
from tests.cosmos.bank.bank_txs import ALICE, BOB, Draft, any_of, coin, multi_send, send

from .conftest import MakeSite, Site
from .html import page


@pytest.fixture
def site(make_site: MakeSite) -> Site:
    """Return a chain on which Alice sent 30 coins and several coins at once to Bob."""
    made = make_site(application="bank", dev=True, chain_id="bank-1")
    for number in range(30):
        made.grow(Draft((send(ALICE, BOB, coin(number + 1)),), sequence=number).signed())
    made.grow(
        Draft(
            (send(ALICE, BOB), multi_send(ALICE, {BOB: 2_500})), sequence=30, memo="=rent"
        ).signed()
    )
    return made


def rows(client: FlaskClient, path: str) -> list[dict[str, str]]:
    answer = client.get(f"/explorer/account/{path}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Disposition"].startswith("attachment; filename=cosmos1")
    return [*csv.DictReader(answer.text.splitlines())]


def test_an_account_begins_with_its_balances_and_lists_both_directions(site: Site) -> None:
    own, other = (page(site.client, f"/account/{each}") for each in (ALICE, BOB))

    assert "999,999,997,034 token" in own.text
    assert "Account number 0 Sequence 31 Key secp256k1" in own.text
    assert "Key unknown until the account signs" in other.text
    assert own.text.count(" sent ") == other.text.count(" received ") == 25
    assert "Send, Multi send sent 1token, 2500token" in own.text
    following = next(link for link in other.links if "cursor=" in link)
    assert page(site.client, following.removeprefix("/explorer")).text.count(" received ") == 6


def test_a_transaction_shows_its_messages_in_words(site: Site) -> None:
    newest = rows(site.client, f"{ALICE}/txs.csv")[0]
    found = page(site.client, f"/tx/{newest['hash']}")

    assert "Fee 500 stake" in found.text
    assert f"Signed by {ALICE} Sequence 30" in found.text
    assert "Memo =rent" in found.text
    sent, several = found.text.index("MsgSend"), found.text.index("MsgMultiSend")
    assert f"From address {ALICE} To address {BOB} Amount 1 token" in found.text[sent:several]
    assert '"2500"' in found.text[several:]
    assert f"/explorer/account/{BOB}" in found.links


def test_files_have_each_transaction_once_in_the_wanted_order(site: Site) -> None:
    newest, oldest = (rows(site.client, f"{BOB}/txs.csv{q}") for q in ("", "?order=asc"))
    assert newest == oldest[::-1]
    assert len({each["hash"] for each in newest}) == 31
    assert (oldest[4]["direction"], oldest[4]["amount"]) == ("received", "5token")

    reply = site.client.get(f"/explorer/account/{BOB}/txs.json?order=asc")
    found = json.loads(reply.text)
    assert [each["hash"] for each in found["txs"]] == [each["hash"] for each in oldest]
    assert found["cursor"] == ""


def test_a_range_has_heights_or_dates(site: Site) -> None:
    every = rows(site.client, f"{BOB}/txs.csv?order=asc")
    first, last = int(every[3]["height"]), int(every[8]["height"])
    assert rows(site.client, f"{BOB}/txs.csv?order=asc&from={first}&to={last}") == every[3:9]
    today = datetime.now(UTC).date()
    before, after = today - timedelta(2), today + timedelta(2)
    assert rows(site.client, f"{BOB}/txs.csv?order=asc&from={before}&to={after}") == every
    assert rows(site.client, f"{BOB}/txs.csv?to={before}") == []
    assert rows(site.client, f"{BOB}/txs.csv?from={after}") == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("?from=x", "from: expected a height or a date such as 2026-01-31"),
        ("?to=2026-13-01", "to: expected a height or a date"),
        ("?order=up", "order: expected asc or desc"),
        ("?cursor=9", "cursor: expected the cursor"),
        ("/txs.pdf", "file: expected txs.csv or txs.json, got txs.pdf"),
    ],
)
def test_bad_parameters_are_refused(site: Site, path: str, text: str) -> None:
    assert text in page(site.client, f"/account/{BOB}{path}", 400).text


def test_a_file_that_would_be_cut_is_refused(make_site: MakeSite) -> None:
    # The limit allows some of the transactions with their events.
    site = make_site(application="bank", dev=True, chain_id="bank-1", max_response_bytes=9_000)
    for number in range(9):
        site.grow(Draft(sequence=number).signed())
    found = page(site.client, f"/account/{ALICE}/txs.csv", 503)
    assert "NODERPC_MAX_RESPONSE_BYTES" in found.text
    assert len(rows(site.client, f"{ALICE}/txs.csv?to=3")) == 3


def test_the_limit_of_a_file_is_one_for_all_its_searches(make_site: MakeSite) -> None:
    site = make_site(application="bank", dev=True, chain_id="bank-1", max_response_bytes=60_000)
    # A search reads 30 transactions, and each of these has more than 1,000 bytes.
    for number in range(60):
        site.grow(Draft(sequence=number).signed())
    found = page(site.client, f"/account/{ALICE}/txs.csv", 503)
    assert "these transactions have more than 60000 bytes" in found.text
    assert len(rows(site.client, f"{ALICE}/txs.csv?to=20")) == 20


def test_the_state_is_left_out_if_queries_are_denied(make_site: MakeSite) -> None:
    site = make_site(
        application="bank",
        dev=True,
        chain_id="bank-1",
        authorize=lambda request, method: method != "abci_query",
    )
    site.grow(Draft().signed())
    found = page(site.client, f"/account/{ALICE}")
    assert "Balance" not in found.text
    assert "sent 1token" in found.text


def test_equal_amounts_are_all_listed(make_site: MakeSite) -> None:
    site = make_site(application="bank", dev=True, chain_id="bank-1")
    site.grow(Draft((send(ALICE, BOB, coin(5)), send(ALICE, BOB, coin(5)))).signed())
    assert rows(site.client, f"{BOB}/txs.csv")[0]["amount"] == "5token, 5token"


def test_a_longer_history_than_a_file_is_refused_as_a_table(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MAX_EXPORT", 10)
    assert "more than 10 transactions" in page(site.client, f"/account/{BOB}/txs.csv", 503).text
    document = json.loads(site.client.get(f"/explorer/account/{BOB}/txs.json").text)
    assert len(document["txs"]) == 10
    rest = site.client.get(f"/explorer/account/{BOB}/txs.json?cursor={document['cursor']}")
    assert json.loads(rest.text)["txs"][0]["height"] == document["txs"][-1]["height"] - 1


@pytest.mark.parametrize(
    "raw", [b"", b"\x1a\x00", b"\x0a\x00", b"\x12\x00", b"a=b", b"\x0a\x02\x0a\x00"]
)
def test_bytes_without_messages_are_no_transaction_of_the_sdk(raw: bytes) -> None:
    chain = _Chain()
    assert tx_facts(chain, chain.query, None, raw, None) is None  # type: ignore[arg-type]
    assert tx_line(raw, None) is None


def test_many_messages_are_cut() -> None:
    raw = Draft(tuple(send(ALICE, BOB) for _ in range(150))).signed()
    chain = _Chain()
    found = tx_facts(chain, chain.query, None, raw, None)  # type: ignore[arg-type]
    assert found is not None
    assert len(found.messages) == 100
    assert Fact("Messages", "150; the first 100 follow") in found.facts


def test_many_signers_and_coins_of_a_fee_are_cut() -> None:
    fee = message(1, string(1, "atom") + string(2, "1")) * 2_000
    info = message(1, b"") * 30_000 + message(2, fee)
    raw = message(1, message(1, send(ALICE, BOB))) + message(2, info)
    chain = _Chain()
    found = tx_facts(chain, chain.query, None, raw, None)  # type: ignore[arg-type]
    assert found is not None
    assert [each.title for each in found.facts] == ["Fee"] * 100 + ["Sequence"] * 100


def test_a_line_has_amount_and_recipient_of_one_message() -> None:
    short = f"{BOB[:11]}…{BOB[-4:]}"
    staking, gov = "/cosmos.staking.v1beta1.", "/cosmos.gov.v1."
    operator = bech32.encode("cosmosvaloper", bytes(20))
    delegate = string(1, ALICE) + string(2, operator) + message(3, coin(5))
    for messages, text in (
        ((send(ALICE, BOB, coin(5), coin(7, "stake")),), f"Send, 5token, 7stake to {short}"),
        (
            (any_of(f"{staking}MsgDelegate", delegate),),
            f"Delegate, 5token to cosmosvaloper1qqqq…{operator[-4:]}",
        ),
        (
            (any_of(f"{gov}MsgVote", integer(1, 3) + string(2, ALICE) + integer(3, 1)),),
            "Vote, proposal 3, yes",
        ),
        (
            (
                any_of(
                    "/cosmos.authz.v1beta1.MsgExec",
                    string(1, ALICE) + message(2, send(ALICE, BOB)),
                ),
            ),
            "Exec, Send",
        ),
        ((any_of("/ibc.v1.MsgRecvPacket", b"\xff"),), "Recv packet"),
        (
            (send(ALICE, BOB), send(ALICE, BOB), multi_send(ALICE, {BOB: 1})),
            "2 × Send, Multi send",
        ),
        (tuple(send(ALICE, BOB) for _ in range(150)), "100 × Send, and more"),
    ):
        line = tx_line(Draft(messages).signed(), None)
        assert line is not None
        assert line.text == text


def test_failed_and_pending_transactions_are_decoded_from_their_bytes(
    make_site: MakeSite,
) -> None:
    site = make_site(application="bank", dev=True, chain_id="bank-1")
    site.grow(Draft((send(ALICE, BOB, coin(10**30)),)).signed())
    waiting = Draft((send(ALICE, BOB, coin(8)),), sequence=1, memo="=later").signed()
    assert site.chain.mempool.submit(waiting).code == 0

    short = f"{BOB[:11]}…{BOB[-4:]}"
    listed = page(site.client, "/txs").text
    assert f"Send, {10**30}token to {short}: spendable balance" in listed
    assert "failed to execute message" not in listed
    assert f"Send, 8token to {short}" in page(site.client, "/mempool").text
    found = page(site.client, f"/tx/{tx_hash(waiting).hex()}")
    assert "Fee 500 stake Sequence 1 Memo =later" in found.text
    assert f"From address {ALICE} To address {BOB} Amount 8 token" in found.text
    assert f"/explorer/account/{BOB}" in found.links


def test_an_account_is_shown_if_the_application_fails(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site(application="bank", dev=True, chain_id="bank-1")
    site.grow(Draft().signed())
    monkeypatch.setattr(Node, "_query", lambda *_: 1 // 0)
    found = page(site.client, f"/account/{ALICE}")
    assert "Balance" not in found.text
    assert "sent 1token" in found.text


class _Chain:
    """The parts of a backend that facts read, for replies of another chain."""

    def __init__(self, **values: bytes) -> None:
        self.application = self
        self._values = values

    def sdk_prefix(self) -> str:
        return "cosmos"

    def query(self, path: str, data: bytes, height: int) -> QueryResult:
        value = self._values.get(path.rpartition("/")[2])
        if value is None:
            return QueryResult(code=6, log="unknown query path: unknown request", key=None)
        return QueryResult(key=None, value=value)


def _metadata(display: str, exponent: int) -> bytes:
    units = message(2, string(1, "token")) + message(
        2, string(1, display) + integer(2, exponent)
    )
    return message(1, units + string(3, "token") + string(4, display) + string(6, "TKN"))


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("1500000", "1.5 TKN"),
        ("1", "0.000001 TKN"),
        ("1000000000000", "1,000,000 TKN"),
        ("0", "0 TKN"),
        ("9" * 90, "9" * 90 + " token"),
        ("x1", "x1 token"),
    ],
)
def test_amounts_are_in_the_unit_of_their_metadata(amount: str, shown: str) -> None:
    chain = _Chain(AllBalances=message(1, coin(amount)), DenomsMetadata=_metadata("tkn", 6))
    facts = account_facts(chain, chain.query, ALICE)  # type: ignore[arg-type]
    assert facts == (Fact("Balance", shown),)


def test_messages_of_unknown_types_show_their_fields_by_number() -> None:
    nested = message(3, string(1, "inner") + integer(2, 7)) + blob(4, b"\xff\xfe")
    value = string(1, ALICE) + integer(2, 5) + integer(2, 6) + nested
    raw = Draft((any_of("/wasm.v9.MsgUnknownThing", value),)).signed()
    chain = _Chain()
    found = tx_facts(chain, chain.query, None, raw, None)  # type: ignore[arg-type]
    assert found is not None
    (shown,) = found.messages
    assert (shown.title, shown.type) == ("Unknown thing", "/wasm.v9.MsgUnknownThing")
    assert shown.facts == (
        Fact("Field 1", ALICE, is_account=True),
        Fact("Field 2", "[5, 6]"),
        Fact("Field 3", '{"field 1": "inner", "field 2": 7}'),
        Fact("Field 4", "fffe"),
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("/cosmos.bank.v1beta1.MsgMultiSend", "Multi send"),
        ("/ibc.core.client.v1.MsgIBCSoftwareUpgrade", "Ibc software upgrade"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_types_are_shown_in_words(kind: str, words: str) -> None:
    assert in_words(kind) == words
