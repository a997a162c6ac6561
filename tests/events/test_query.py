"""Tests of the query language, with a lark grammar of the same language as the oracle."""

from __future__ import annotations

from contextlib import suppress
from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import UnexpectedInput

from flask_noderpc.errors import QuerySyntaxError
from flask_noderpc.events.query import parse

# The grammar of CometBFT 0.38's query package, in the syntax of another parser.
ORACLE = Lark(
    r"""
    start: cond ("AND" cond)*
    cond: TAG OP NUMBER -> number
        | TAG OP "TIME " TIME -> time
        | TAG OP "DATE " DATE -> date
        | TAG "=" STRING -> string
        | TAG "=" NUMBER -> number
        | TAG "=" "TIME " TIME -> time
        | TAG "=" "DATE " DATE -> date
        | TAG "CONTAINS" STRING -> contains
        | TAG "EXISTS" -> exists
    OP.2: "<=" | ">=" | "<" | ">"
    NUMBER: /[0-9]+(\.[0-9]*)?/
    STRING: /'[^']*'/
    TIME: /(19|2[0-9])[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z/
    DATE: /(19|2[0-9])[0-9]{2}-[0-9]{2}-[0-9]{2}/
    TAG: /(?!(AND|EXISTS|CONTAINS)(?![\w.-]))[^\W\d][\w.-]*/
    %ignore /\s+/
    """,
    parser="lalr",
    lexer="contextual",
)

TAGS = st.from_regex(r"[a-z_][a-zA-Z0-9_]{0,6}(\.[a-z0-9-]{1,6})?", fullmatch=True)
STRINGS = st.text(st.characters(blacklist_characters="'", codec="utf-8"), max_size=8).map(
    lambda text: f"'{text}'"
)
NUMBERS = st.from_regex(r"[0-9]{1,6}(\.[0-9]{0,3})?", fullmatch=True)
DATES = st.dates(date(1900, 1, 1), date(2999, 12, 31)).map(lambda day: f"DATE {day}")
TIMES = DATES.map(lambda text: f"TIME {text[5:]}T11:22:33Z")
CONDITIONS = st.one_of(
    st.tuples(TAGS, st.just("="), st.one_of(STRINGS, NUMBERS, DATES, TIMES)),
    st.tuples(TAGS, st.sampled_from(["<", "<=", ">", ">="]), st.one_of(NUMBERS, DATES, TIMES)),
    st.tuples(TAGS, st.just("CONTAINS"), STRINGS),
    st.tuples(TAGS, st.just("EXISTS"), st.just("")),
)
GAPS = st.sampled_from([" ", "  ", "\t"])


@st.composite
def queries(draw: st.DrawFn) -> str:
    parts = draw(st.lists(CONDITIONS, min_size=1, max_size=4))
    gap = draw(GAPS)
    return f"{gap}AND{gap}".join(gap.join(part).rstrip() for part in parts)


PIECES = st.sampled_from(
    [
        *("a.b", "tm.event", "=", "<", ">=", "'x'", "'", "5", "5.", "AND", "EXISTS"),
        *(
            "CONTAINS",
            "DATE 2020-01-01",
            "TIME 2020-01-01T00:00:00Z",
            " ",
            '"',
            "(",
            "-",
            "é",
            "٣",
        ),
    ]
)


@given(queries())
def test_a_query_of_the_grammar_is_read_and_its_normal_form_is_the_same(text: str) -> None:
    ORACLE.parse(text)

    query = parse(text)

    assert parse(str(query)) == query
    assert str(parse(str(query))) == str(query)


@given(st.lists(PIECES, max_size=8).map(" ".join))
@example("a.b = 'x' '")
def test_queries_that_lark_refuses_are_refused(text: str) -> None:
    # In CometBFT, an unterminated string ends the query, and is ignored.
    is_open = text.count("'") % 2 == 1
    try:
        ORACLE.parse(text[: text.rindex("'")] if is_open else text)
    except UnexpectedInput:
        with pytest.raises(QuerySyntaxError):
            parse(text)
    else:
        assert parse(str(parse(text))) == parse(text)


@given(st.text())
def test_no_text_raises_anything_but_a_syntax_error(text: str) -> None:
    with suppress(QuerySyntaxError):
        query = parse(text)
        assert parse(str(query)) == query


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "offset 0: EOF"),
        ("a", "offset 1: EOF"),
        ("a=", "offset 2: EOF"),
        ("a='open", "offset 2: EOF"),
        ("a=5 AND", "offset 7: EOF"),
        ("a=5 b=6", "offset 4: got tag, wanted AND operator"),
        ("5=a", "offset 0: got number, wanted tag"),
        ("AND", "offset 0: got AND operator, wanted tag"),
        ('a="x"', 'offset 2: invalid input "'),
        ("a\x1f=5", "offset 1: invalid input \x1f at offset 2"),
        ("a=5 \x1c", "offset 4: invalid input \x1c at offset 5"),
        ("a/b=5", "offset 1: invalid input /"),
        ("a<'x'", "offset 2: got string, wanted number, timestamp or datestamp"),
        ("a CONTAINS 5", "offset 11: got number, wanted string"),
        ("a=b", "offset 2: got tag, wanted number, timestamp, datestamp or string"),
        ("a=DATE 2020-13-01", "offset 2: invalid DATE value"),
        ("a=DATE 1899-01-01", "offset 2: datestamp year 1899 out of range"),
        ("a=TIME 3000-01-01T00:00:00Z", "offset 2: timestamp year 3000 out of range"),
        ("a=TIME tomorrow", "offset 2: invalid TIME value"),
        ("a=5 and b=6", "offset 4: got tag, wanted AND operator"),
    ],
)
def test_a_parse_error_names_position_and_cause(text: str, error: str) -> None:
    with pytest.raises(QuerySyntaxError) as raised:
        parse(text)

    assert str(raised.value).startswith(error)


EVENTS = {
    "tm.event": ["Tx"],
    "tx.height": ["7"],
    "transfer.amount": ["8atom", "6.5stake", "none"],
    "transfer.to": ["alice", "bob"],
    "vote.day": ["2020-05-06"],
    "vote.at": ["2020-05-06T07:08:09.5Z"],
    "wallet.to": ["carol"],
    "big.number": ["123456789012345678901234567890"],
    "neg.number": ["-5"],
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("tm.event='Tx'", True),
        ("tm.event='tx'", False),
        ("tm.event = 'Tx' AND tx.height=7", True),
        ("tm.event='Tx' AND tx.height=8", False),
        # Any value of a key may satisfy a condition, and each condition may use another value.
        ("transfer.to='alice' AND transfer.to='bob'", True),
        ("transfer.to='alice' AND wallet.to='carol'", True),
        ("transfer.amount=8", True),
        ("transfer.amount=8.0", True),
        ("transfer.amount>8", False),
        ("transfer.amount<7", True),
        ("transfer.amount>=6.5 AND transfer.amount<=6.5", True),
        ("transfer.to>0", False),
        ("neg.number<0", False),
        ("big.number=123456789012345678901234567890", True),
        ("big.number>123456789012345678901234567889", True),
        ("transfer.to CONTAINS 'li'", True),
        ("transfer.to CONTAINS ''", True),
        ("transfer.to CONTAINS 'lix'", False),
        ("transfer.to EXISTS", True),
        ("transfer EXISTS", True),
        ("trans EXISTS", False),
        ("absent.key EXISTS", False),
        ("vote.day=DATE 2020-05-06", True),
        ("vote.day>DATE 2020-05-05", True),
        ("vote.day<DATE 2020-05-06", False),
        ("vote.at>TIME 2020-05-06T09:08:08+02:00", True),
        ("vote.at>TIME 2020-05-06T07:08:09Z", True),
        # The operand's type decides how a value is read.
        ("vote.at=DATE 2020-05-06", False),
        ("vote.day=TIME 2020-05-06T00:00:00Z", False),
        ("tx.height='7'", True),
    ],
)
def test_a_query_holds_as_on_cometbft_0_38(text: str, holds: bool) -> None:
    assert parse(text).matches(EVENTS) is holds


def test_nothing_matches_a_message_without_keys() -> None:
    assert not parse("a EXISTS").matches({})


def test_ten_thousand_conditions_are_read_without_recursion() -> None:
    query = parse(" AND ".join(["a.b=1"] * 10_000))

    assert len(query.conditions) == 10_000


def test_equal_queries_are_one_key() -> None:
    assert {parse("a='x'"): 1}[parse("a  =  'x'")] == 1
