"""SQL conditions: three-valued truth, names, values, and the examples of Service Bus and JMS."""

import contextlib
import sqlite3
import subprocess
import sys

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from storage.domain.filters.conditions import ConditionInvalid, SqlCondition
from storage.domain.filters.sql.like import compile_like
from storage.domain.log.json_body import NOTHING
from tests.unit.filters.documents import JsonDocument, with_headers

ORDER = JsonDocument(
    {
        "subject": "order.created.eu",
        "key": "c7",
        "headers": {
            "retries": "2",
            "tenant": "t7",
            "size": "9",
            "trace-id": "abc",
            "a.b": "dotted",
            "order": "first",
            "empty": "",
            "flag": "true",
            "weight": 2.5,
            "CorrelationId": "high",
            "JMSPriority": "9",
            "quote'd": "it's",
        },
        "body": {
            "total": 130.5,
            "count": 3,
            "vip": True,
            "test": False,
            "none": None,
            "tags": ["a"],
            "user": {"id": 7, "name": "Ada"},
            "text": "10",
            "big": 10**300,
        },
        "content_type": "application/json",
        "size": 812,
        "meta": {"topic": "orders", "hops": 0},
    }
)
T, F, U = "TRUE", "FALSE", "absent = 1"


def truth(text: str, document: JsonDocument = ORDER) -> bool | None:
    if SqlCondition(text).holds(document):
        return True
    return False if SqlCondition(f"NOT ({text})").holds(document) else None


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        (T, T, True, True),
        (T, F, False, True),
        (T, U, None, True),
        (F, T, False, True),
        (F, F, False, False),
        (F, U, False, None),
        (U, T, None, True),
        (U, F, False, None),
        (U, U, None, None),
    ],
)
def test_connectors_have_three_values(left, right, both, either):
    assert truth(f"{left} AND {right}") is both
    assert truth(f"{left} OR {right}") is either


@pytest.mark.parametrize(("operand", "negated"), [(T, False), (F, True), (U, None)])
def test_negation_keeps_unknown(operand, negated):
    assert truth(f"NOT {operand}") is negated


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # comparisons
        ("body.total = 130.5", True),
        ("body.total <> 130.5", False),
        ("body.total != 1", True),
        ("body.count < 4 AND body.count <= 3 AND body.count > 2 AND body.count >= 3", True),
        ("3 = body.count AND 4 > body.count", True),
        ("body.count = 3.0", True),
        ("body.count = '3'", None),
        ("body.text = 10", None),
        ("body.text = '10'", True),
        ("tenant = 't7' AND tenant > 't6' AND tenant < 't8'", True),
        ("body.vip = TRUE", True),
        ("body.vip <> FALSE", True),
        ("body.vip = 1", None),
        ("body.vip > FALSE", None),
        ("flag = TRUE", None),
        ("body.none = NULL", None),
        ("body.none = 1", None),
        ("body.none <> 1", None),
        ("body.tags = 'a'", None),
        ("body.user = 7", None),
        ("body.user.id = 7 AND body.user.name = 'Ada'", True),
        ("absent <> absent", None),
        ("1 = 1", True),
        ("1 = 2", False),
        ("'a' = 'a'", True),
        ("TRUE = TRUE", True),
        # a header's text beside a number
        ("retries < 3", True),
        ("retries = 2 AND retries = 2.0 AND 2 = retries", True),
        ("headers.retries < 3", True),
        ("tenant = 7", None),
        ("empty = 0", None),
        ("retries = '2'", True),
        ("retries = body.count", False),
        ("retries < body.count", True),
        ("retries IN (1, 2)", True),
        ("retries BETWEEN 1 AND 3", True),
        ("weight > retries", True),
        ("retries < '10'", False),
        # arithmetic
        ("retries + 1 = 3", True),
        ("retries + retries = 4", True),
        ("retries + body.count * 2 = 8", True),
        ("(retries + body.count) * 2 = 10", True),
        ("-retries = -2", True),
        ("- -5 = 5", True),
        ("+retries = 2", True),
        ("7 / 2 = 3.5 AND 6 / 2 = 3", True),
        ("7 % 2 = 1 AND -7 % 2 = -1 AND 7 % -2 = 1", True),
        ("7.5 % 2 = 1.5", True),
        ("1 / 0 = 1", None),
        ("1 % 0 = 1", None),
        ("1.0 % 0 = 1", None),
        ("body.big * 10 > body.big", True),
        ("body.big * body.big > 0", None),
        ("body.big * 1e300 > 0", None),
        ("1e300 * 1e300 > 0", None),
        ("tenant + 1 > 0", None),
        ("'1' + 1 = 2", None),
        ("body.vip + 1 = 2", None),
        ("-tenant = 1", None),
        ("2 + 3 * 4 - 1 = 13", True),
        # IN
        ("tenant IN ('t7', 't8')", True),
        ("tenant IN ('t8')", False),
        ("tenant NOT IN ('t8')", True),
        ("absent IN ('t8')", None),
        ("absent NOT IN ('t8')", None),
        ("body.count IN ('3')", None),
        ("body.count IN (1, NULL)", None),
        ("body.count IN (3, NULL)", True),
        ("body.count IN (retries + 1, 9)", True),
        # BETWEEN
        ("body.count BETWEEN 3 AND 3", True),
        ("body.count NOT BETWEEN 4 AND 9", True),
        ("body.count BETWEEN absent AND 9", None),
        ("body.count BETWEEN absent AND 2", False),
        ("tenant BETWEEN 't1' AND 't9'", True),
        ("NOT retries BETWEEN 5 AND 9 AND TRUE", True),
        # IS NULL, EXISTS
        ("absent IS NULL", True),
        ("absent IS NOT NULL", False),
        ("body.none IS NULL", True),
        ("body.tags IS NOT NULL", True),
        ("tenant IS NOT NULL", True),
        ("1 / 0 IS NULL", True),
        ("EXISTS(body.none)", True),
        ("EXISTS(absent)", False),
        ("NOT EXISTS(body.user.missing)", True),
        ("EXISTS(headers.retries)", True),
        # LIKE
        ("subject LIKE 'order.%'", True),
        ("subject LIKE '%.eu'", True),
        ("subject LIKE '%created%'", True),
        ("subject LIKE 'order._______.eu'", True),
        ("subject NOT LIKE 'refund%'", True),
        ("subject NOT LIKE 'order%'", False),
        ("subject NOT LIKE 'order%' ESCAPE '!'", False),
        ("NOT subject NOT LIKE 'order%' ESCAPE '!'", True),
        ("absent LIKE '%'", None),
        ("absent NOT LIKE '%'", None),
        ("body.count LIKE '3'", None),
        ("retries LIKE '2'", True),
        ("empty LIKE ''", True),
        ("empty LIKE '_'", False),
        # a name as a condition
        ("body.vip", True),
        ("NOT body.test", True),
        ("body.count", None),
        ("flag", None),
        ("absent OR body.vip", True),
        # names
        ("size = 812", True),
        ("headers.size = 9", True),
        ('"size" = 9', True),
        ("\"trace-id\" = 'abc' AND [trace-id] = 'abc' AND headers.[trace-id] = 'abc'", True),
        ("\"a.b\" = 'dotted' AND headers.\"a.b\" = 'dotted'", True),
        ("order = 'first'", True),
        ("\"quote'd\" = 'it''s'", True),
        ("key = 'c7' AND content_type LIKE 'application/%' AND meta.hops = 0", True),
        ("meta.topic = 'orders' and not body.test", True),
        ("user.tenant = 't7'", True),
        ("sys.Label = 'order.created.eu' AND sys.subject = JMSType", True),
        ("sys.CorrelationId = 'high' AND JMSCorrelationID = sys.correlationid", True),
        ("sys.SessionId = 'c7' AND JMSXGroupID = 'c7'", True),
        ("JMSPriority > 8", True),
        # precedence
        ("FALSE AND FALSE OR TRUE", True),
        ("FALSE AND (FALSE OR TRUE)", False),
        ("NOT FALSE AND FALSE", False),
        ("NOT body.count = 4", True),
    ],
)
def test_condition_has_its_truth_value(text, expected):
    assert truth(text) is expected


SERVICE_BUS = JsonDocument(
    {
        "subject": "BlueBus",
        "headers": {
            "color": "blue",
            "quantity": "10",
            "limit": "10",
            "StoreId": "Store5",
            "property": "azure%x",
        },
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sys.Label LIKE '%bus%'", False),
        ("sys.Label LIKE '%Bus%'", True),
        ("color='blue' AND quantity=10", True),
        ("color = 'blue' OR user.color = 'red'", True),
        ("quantity + 1 > limit + 0", True),
        ("StoreId IN ('Store1', 'Store5')", True),
        ("StoreId NOT IN ('Store1','Store2') OR StoreId IS NULL", True),
        ("sys.To IN ('Store5','Store6') OR StoreId = 'Store8'", None),
        ("property LIKE 'azure\\%%' ESCAPE '\\'", True),
        ("EXISTS(color) AND NOT EXISTS(shape)", True),
        ("user.property IS NOT NULL", True),
        ("1=1", True),
        ("1=0", False),
    ],
)
def test_service_bus_rule_has_its_truth_value(text, expected):
    assert truth(text, SERVICE_BUS) is expected


CAR = JsonDocument(
    {
        "subject": "car",
        "headers": {"color": "blue", "weight": 2600, "age": 17, "phone": "12993", "word": "lose"},
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("JMSType = 'car' AND color = 'blue' AND weight > 2500", True),
        ("age BETWEEN 15 AND 19", True),
        ("age NOT BETWEEN 15 AND 19", False),
        ("age >= 15 AND age <= 19", True),
        ("age < 15 OR age > 19", False),
        ("Country IN ('UK', 'US', 'France')", None),
        ("(Country = 'UK') OR (Country = 'US') OR (Country = 'France')", None),
        ("color NOT IN ('UK', 'US', 'France')", True),
        ("phone LIKE '12%3'", True),
        ("phone LIKE '12%4'", False),
        ("word LIKE 'l_se'", True),
        ("word LIKE 'los'", False),
        ("underscored LIKE '\\_%' ESCAPE '\\'", None),
        ("phone NOT LIKE '12%3'", False),
        ("prop_name IS NULL", True),
        ("word IS NOT NULL", True),
    ],
)
def test_jms_selector_has_its_truth_value(text, expected):
    assert truth(text, CAR) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", True),
        ("+2", True),
        ("2.", True),
        ("2e0", True),
        ("02", True),
        (" 2", None),
        ("2 ", None),
        ("٢", None),
        ("0x2", None),
        ("2_0", None),
        ("two", None),
        ("", None),
        ("NaN", None),
        ("Infinity", None),
        ("1e999", None),
        ("2" * 65, None),
        ("3", False),
    ],
)
def test_header_text_is_a_number_beside_a_number(text, expected):
    assert truth("n = 2", with_headers(n=text)) is expected


@pytest.mark.parametrize(
    ("pattern", "escape", "text", "expected"),
    [
        ("a%c", "", "abc", True),
        ("a%c", "", "ac", True),
        ("a%c", "", "a\nc", True),
        ("ab%bc", "", "abc", False),
        ("%a%b%", "", "xaxbx", True),
        ("%a%b%", "", "xbxax", False),
        ("_", "", "", False),
        ("_", "", "ü", True),
        ("%", "", "", True),
        ("%%", "", "x", True),
        ("", "", "", True),
        ("", "", "x", False),
        ("!%", "!", "%", True),
        ("!%", "!", "x", False),
        ("!_%", "!", "_x", True),
        ("!!", "!", "!", True),
        ("a!b", "!", "ab", True),
        ("a.c", "", "abc", False),
        ("%%", "%", "%", True),
        ("(%", "", "(x", True),
    ],
)
def test_like_matches_pattern(pattern, escape, text, expected):
    assert compile_like(pattern, escape)(text) is expected


def like(pattern: str, text: str) -> bool:
    """Match by the definition, one character of the pattern after the other."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(pattern[1:], text[start:]) for start in range(len(text) + 1))
    return bool(text) and pattern[0] in {"_", text[0]} and like(pattern[1:], text[1:])


@given(st.text("ab%_", max_size=8), st.text("ab", max_size=10))
def test_like_equals_its_recursive_definition(pattern, text):
    assert compile_like(pattern)(text) is like(pattern, text)


@given(st.text("ab%_!.\\", max_size=12))
def test_like_matches_escaped_text_literally(text):
    escaped = "".join(f"!{character}" for character in text)

    assert compile_like(escaped, "!")(text) is True
    assert compile_like(escaped, "!")(f"{text}x") is False


ATOMS = st.sampled_from(
    [
        T, F, U, "body.vip", "retries > 1", "retries > 5", "absent IS NULL", "tenant LIKE 't%'",
        "body.none = 1", "body.count IN (1, 3)", "retries BETWEEN 0 AND 1", "1 / 0 = 1",
    ]
)  # fmt: skip
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=8,
)


@given(CONDITIONS, CONDITIONS)
def test_conditions_follow_the_laws_of_logic(left, right):
    assert truth(f"NOT (NOT {left})") is truth(left)
    assert truth(f"NOT ({left} AND {right})") is truth(f"NOT {left} OR NOT {right}")
    assert truth(f"{left} AND {right}") is truth(f"{right} AND {left}")


NUMBERS = st.recursive(
    st.sampled_from(["a", "b", "c", "0", "1", "2.5", "-1", "NULL"]),
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from("+-*%"), st.sampled_from("abc12")),
        st.builds("({})".format, inner),
        st.builds("- {}".format, inner),
    ),
    max_leaves=4,
)
COMPARISONS = st.one_of(
    st.builds(
        "{} {} {}".format,
        NUMBERS,
        st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]),
        NUMBERS,
    ),
    st.builds("{} BETWEEN {} AND {}".format, NUMBERS, NUMBERS, NUMBERS),
    st.builds("{} NOT IN ({}, {})".format, NUMBERS, NUMBERS, NUMBERS),
    st.builds("({}) IS NOT NULL".format, NUMBERS),
)
EXPRESSIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds("{} AND {}".format, inner, inner),
        st.builds("{} OR {}".format, inner, inner),
        st.builds("NOT {}".format, inner),
        st.builds("({})".format, inner),
    ),
    max_leaves=5,
)
INTEGERS = st.none() | st.integers(-3, 3)


@given(EXPRESSIONS, INTEGERS, INTEGERS, INTEGERS)
def test_condition_equals_sqlite(text, a, b, c):
    """Priorities of operators and three-valued truth; a remainder is one of integers there."""
    assume("%" not in text or "." not in text)
    names = {"a": a, "b": b, "c": c}
    columns = ", ".join(f":{name} AS {name}" for name in names)
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        [(result,)] = database.execute(f"SELECT {text} FROM (SELECT {columns})", names)

    expected = None if result is None else bool(result)
    assert truth(text, with_headers(**names)) is expected


@given(CONDITIONS)
def test_explanation_names_paths_of_the_condition(text):
    condition = SqlCondition(text)

    if condition.holds(ORDER):
        assert condition.explain(ORDER) == []
    assert {path for path, _ in condition.explain(ORDER)} <= condition.paths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("retries < 3", []),
        ("retries < 2", [(("headers", "retries"), "2")]),
        ("body.vip AND absent = 1", [(("headers", "absent"), NOTHING)]),
        ("NOT body.vip", [(("body", "vip"), True)]),
        ("(body.vip OR body.test) AND body.count = 4", [(("body", "count"), 3)]),
        (
            "NOT (body.vip AND retries = 2)",
            [(("body", "vip"), True), (("headers", "retries"), "2")],
        ),
        ("retries = 3 OR retries = 4", [(("headers", "retries"), "2")]),
        ("body.count > retries + 5", [(("body", "count"), 3), (("headers", "retries"), "2")]),
        ("FALSE", []),
    ],
)
def test_explanation_has_values_that_fail(text, expected):
    assert SqlCondition(text).explain(ORDER) == expected


def test_condition_names_its_paths():
    condition = SqlCondition("body.a = retries AND EXISTS(key) OR x IN (subject, 1)")

    assert condition.paths == {
        ("body", "a"),
        ("headers", "retries"),
        ("headers", "x"),
        ("key",),
        ("subject",),
    }


def test_sqlglot_is_loaded_by_the_first_condition():
    """A start without conditions took 0.3 s longer."""
    script = (
        "import sys; from storage.domain.filters import conditions;"
        "from storage.domain.filters.translators import engine; assert 'sqlglot' not in sys.modules;"
        "conditions.SqlCondition('a = 1'); assert 'sqlglot' in sys.modules"
    )

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


WORDS = st.sampled_from(
    [
        "a",
        "b.c",
        "body.n",
        "subject",
        "1",
        "2.5",
        "'x'",
        "NULL",
        "TRUE",
        "FALSE",
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "LIKE",
        "ESCAPE",
        "IS",
        "EXISTS",
        "(",
        ")",
        ",",
        "=",
        "<>",
        "<",
        "<=",
        "+",
        "-",
        "*",
        "/",
        "%",
        ".",
        ";",
        "SELECT",
        "CASE",
        "x(",
        '"q"',
        "[r]",
        "--",
        "/*",
        "*/",
        "@p",
        "?",
        ":n",
    ]
)
LETTERS = "ab.1'\"()[]=<>-+*/%,! \nANDORNTIKELS"
TOKENS = st.lists(WORDS, max_size=20).map(" ".join)


@given(st.text(max_size=60) | st.text(LETTERS, max_size=60) | TOKENS)
def test_random_text_is_compiled_or_refused(text):
    reason, condition = "", None
    try:
        condition = SqlCondition(text)
    except ConditionInvalid as error:
        reason = error.reason

    assert (condition is None) is reason.endswith(".")
    if condition is not None:
        condition.holds(ORDER)
        condition.explain(ORDER)
