"""Refused conditions, with their reasons, and the bounds of size, nesting and time."""

import pytest

from storage.domain import limits
from storage.domain.filters.conditions import ConditionInvalid, SqlCondition
from tests.unit.filters.documents import with_headers

INCOMPLETE = "A value, an operator or a parenthesis is missing."
NOT_A_VALUE = "A condition is not a value: connect conditions by AND, OR and NOT."
STATEMENT = "Statements and sub-queries are not supported: 'SELECT'."


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("", "The condition is empty.", None),
        ("  \n", "The condition is empty.", None),
        ("-- comment", "The condition is empty.", None),
        ("a = 1 -- comment", "Comments are not supported.", 4),
        ("a = /* comment */ 1", "Comments are not supported.", 2),
        ("a = 'x", "A quotation mark, bracket or comment is not closed.", None),
        ('"a = 1', "A quotation mark, bracket or comment is not closed.", None),
        ("a =", INCOMPLETE, None),
        ("= 1", INCOMPLETE, None),
        ("NOT", INCOMPLETE, None),
        ("+", INCOMPLETE, None),
        ("a AND", INCOMPLETE, None),
        ("(a = 1", INCOMPLETE, None),
        ("a BETWEEN 1", INCOMPLETE, None),
        ("a = 1)", "')' is not expected here.", 5),
        ("a == 1", "'=' is not expected here.", 3),
        ("a <=> 1", "'>' is not expected here.", 4),
        ("a, b", "',' is not expected here.", 1),
        ("a NOT b", "'NOT' is not expected here.", 2),
        ("()", "A value is missing in the parentheses.", 0),
        ("a IN ()", "A value is missing in the parentheses.", 5),
        ("a IN (1,)", "A value is missing beside the comma.", 7),
        ("a IN (,1)", "A value is missing beside the comma.", 6),
        ("a IN b", "IN is followed by values in parentheses.", 0),
        ("SELECT 1", STATEMENT, 0),
        ("a = 1 AND b IN (SELECT c FROM d)", STATEMENT, 16),
        ("(SELECT 1)", STATEMENT, 1),
        ("EXISTS(SELECT 1)", STATEMENT, 7),
        ("DROP TABLE a", "Statements and sub-queries are not supported: 'DROP'.", 0),
        ("a = 1; DROP TABLE a", "';' is not supported.", 5),
        ("lower(a) = 'x'", "Functions are not supported: 'lower'.", 0),
        ("a = now()", "Functions are not supported: 'now'.", 4),
        ("CAST(a AS int) = 1", "Functions are not supported: 'CAST'.", 0),
        ("ROW_NUMBER() OVER (ORDER BY a) = 1", "Functions are not supported: 'ROW_NUMBER'.", 0),
        ("a = ANY(b)", "Functions are not supported: 'ANY'.", 4),
        ("CASE WHEN a THEN b END", "CASE is not supported.", 0),
        ("a::int = 1", "':' is not supported.", 1),
        ("a = ?", "'?' is not supported.", 4),
        ("a = :p", "':' is not supported.", 4),
        ("a = @p", "'@' is not supported.", 4),
        ("a || b = 'x'", "'|' is not supported.", 2),
        ("a ~ 'x'", "'~' is not supported.", 2),
        ("a & 1 = 1", "'&' is not supported.", 2),
        ("a ^ 1 = 1", "'^' is not supported.", 2),
        ("!a", "'!' is not supported.", 0),
        ("{fn now()}", "'{' is not supported.", 0),
        ("a = `b`", "'`' is not supported.", 4),
        ("a RLIKE 'x'", "An operator is missing before 'RLIKE'.", 2),
        ("a AS b", "An operator is missing before 'AS'.", 2),
        ("a COLLATE b = 1", "An operator is missing before 'COLLATE'.", 2),
        ("a = DATE '2026-01-01'", "An operator is missing before '2026-01-01'.", 9),
        ("a = 0x1F", "An operator is missing before 'x1F'.", 5),
        ("a = 1 2", "An operator is missing before '2'.", 6),
        ("body.a[0] = 1", "An operator is missing before '0'.", 6),
        ("a IS DISTINCT FROM b", "An operator is missing before 'FROM'.", 14),
        ("a IS TRUE", "IS is followed by NULL or NOT NULL.", 0),
        ("a LIKE b", "LIKE is followed by a pattern in quotes.", 0),
        ("a LIKE 1", "LIKE is followed by a pattern in quotes.", 0),
        ("a LIKE 'x' ESCAPE 'xx'", "ESCAPE is followed by one character in quotes.", 0),
        ("a LIKE 'x' ESCAPE ''", "ESCAPE is followed by one character in quotes.", 0),
        (
            "a LIKE 'x!' ESCAPE '!'",
            "A LIKE pattern cannot end with its escape character '!'.",
            None,
        ),
        ("EXISTS a", "EXISTS takes a name in parentheses.", 0),
        ("EXISTS(1)", "EXISTS takes a name.", None),
        ("EXISTS(a = 1)", "EXISTS takes a name.", 7),
        ("a = 1 = 2", NOT_A_VALUE, 0),
        ("(a = 1) = TRUE", NOT_A_VALUE, 1),
        ("a IS NULL IS NULL", NOT_A_VALUE, 0),
        ("(a AND b) + 1 = 2", NOT_A_VALUE, 1),
        ("5", "5 is a value; a condition is expected here.", None),
        ("'x'", "'x' is a value; a condition is expected here.", None),
        ("a + 1", "a + 1 is a value; a condition is expected here.", 0),
        ("b AND a + 1", "a + 1 is a value; a condition is expected here.", 6),
        ("*", "STAR is not supported.", None),
        ("a IN ((1, 2))", "TUPLE is not supported.", None),
        ("1e999 = a", "'1e999' is not a finite number.", None),
        ("sys.Nothing = 1", "A message has no system property 'sys.Nothing'.", 0),
    ],
)
def test_condition_is_refused_with_a_reason(text, reason, position):
    with pytest.raises(ConditionInvalid) as refusal:
        SqlCondition(text)

    assert (refusal.value.reason, refusal.value.position) == (reason, position)


@pytest.mark.parametrize("text", ["headers.* = 1", "a. = 1", ".a = 1", "a..b = 1", "body.a.0 = 1"])
def test_dot_stands_between_names(text):
    with pytest.raises(ConditionInvalid, match="A dot stands between two names"):
        SqlCondition(text)


def test_unknown_field_is_refused_with_the_fields():
    with pytest.raises(ConditionInvalid, match=r'as "trace\.id"') as refusal:
        SqlCondition("a = 1 AND trace.id = 1")

    assert refusal.value.position == 10


@pytest.mark.parametrize(
    "text",
    [
        "(" * 2_000 + "a" + ")" * 2_000,
        "(" * 4_000,
        "NOT " * 1_000 + "a",
        "- " * 2_000 + "1 = a",
        "+" * 4_000 + "1 = a",
        "NOT (" * 17 + "a" + ")" * 17,
        "a IN (" * 100 + "1" + ")" * 100,
        "EXISTS(" * 500,
        "- (" * 1_000,
        "f(" * 1_000,
        "[" * 4_000,
        "1" + "+1" * 2_000 + " = a",
        "a" + " = a" * 1_000,
        "a" + " IS NULL" * 500,
        "a" + " LIKE 'x'" * 400,
        "a" + " BETWEEN 1 AND 2" * 200,
        "a" + " IN (1)" * 500,
        "a AND (b OR " * 300 + "c" + ")" * 300,
        "CASE WHEN " * 400,
        "a" + ".a" * 2_000 + " = 1",
        "body" + ".a" * 32 + " = 1",
        "a = " + "9" * 65,
        "a LIKE '" + "x" * 257 + "'",
        "a = 1 OR " * 400 + "a = 1",
        "x" * (limits.WHERE_CHARACTERS_MAX + 1),
    ],
)
def test_large_condition_is_refused(text):
    with pytest.raises(ConditionInvalid):
        SqlCondition(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(" * 16 + "n = 1" + ")" * 16, True),
        ("NOT " * 16 + "n = 1", True),
        ("NOT (" * 8 + "n = 1" + ")" * 8, True),
        ("n = 1" + "+0" * 60, True),
        (" AND ".join(["n = 1"] * 120), True),
        (" OR ".join(["n = 2"] * 120 + ["n = 1"]), True),
        ("n IN (" + ", ".join(map(str, range(400))) + ")", True),
        ("body" + ".a" * 31 + " IS NULL", True),
        ("n = 1 OR n = '" + "x" * 4_081 + "'", True),
    ],
)
def test_condition_within_the_bounds_is_compiled(text, expected):
    assert SqlCondition(text).holds(with_headers(n="1")) is expected


@pytest.mark.parametrize(
    ("pattern", "character"),
    [("%a" * 128, "a"), ("%a_" * 80 + "b", "a"), ("%" + "a_" * 120 + "b", "a"), ("_%" * 128, "b")],
)
def test_like_takes_no_exponential_time(pattern, character):
    condition = SqlCondition(f"text LIKE '{pattern}'")

    condition.holds(with_headers(text=character * limits.LIKE_TEXT_CHARACTERS_MAX))


def test_like_is_unknown_when_its_search_would_be_long():
    text = "a" * (limits.LIKE_TEXT_CHARACTERS_MAX + 1)

    assert not SqlCondition("text LIKE '%_a%'").holds(with_headers(text=text))
    assert not SqlCondition("text NOT LIKE '%_a%'").holds(with_headers(text=text))
    assert SqlCondition("text LIKE '%aa%'").holds(with_headers(text=text))
