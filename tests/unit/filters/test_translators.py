"""Conditions of Pub/Sub, Service Bus, JMS and RabbitMQ as matches."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.filters.conditions import SqlCondition
from storage.domain.filters.matches import parse_matches
from storage.domain.filters.translation import Translation, TranslationRefused
from storage.domain.filters.translators.engine import translate
from storage.domain.filters.translators.pubsub import MISSING_NOTE, WHERE_NOTE
from tests.unit.filters.documents import with_headers

ABSENT = {"exists": False}


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ('attributes.domain = "com"', {"domain": ["com"]}),
        ('attributes.domain != "com"', {"domain": [{"anything-but": "com"}, ABSENT]}),
        ('hasPrefix(attributes.domain, "co")', {"domain": [{"prefix": "co"}]}),
        (
            'NOT hasPrefix(attributes.domain, "co")',
            {"domain": [{"anything-but": {"prefix": "co"}}, ABSENT]},
        ),
        ('hasPrefix(attributes.domain, "")', {"domain": [{"exists": True}]}),
        ("attributes:lang", {"lang": [{"exists": True}]}),
        ("NOT attributes:lang", {"lang": [ABSENT]}),
        ("-attributes:lang", {"lang": [ABSENT]}),
        ("NOT (NOT attributes:lang)", {"lang": [{"exists": True}]}),
        ('NOT attributes.a != "x"', {"a": ["x"]}),
        ('attributes:"iana.org/language_tag"', {"iana.org/language_tag": [{"exists": True}]}),
        (r'attributes.a = "\u00fc\x41\101\"\n"', {"a": ['üAA"\n']}),
        ('attributes.a-b_1="x"', {"a-b_1": ["x"]}),
        ('attributes.a = "1" OR attributes.a = "2"', {"a": ["1", "2"]}),
        ('attributes:a AND attributes.b = "2"', {"a": [{"exists": True}], "b": ["2"]}),
        (
            'attributes.a = "1" AND (attributes.b = "2" OR NOT hasPrefix(attributes.c, "x"))',
            {
                "a": ["1"],
                "$or": [{"b": ["2"]}, {"c": [{"anything-but": {"prefix": "x"}}, ABSENT]}],
            },
        ),
        (
            'NOT (attributes:a AND attributes.b = "1")',
            {"$or": [{"a": [ABSENT]}, {"b": [{"anything-but": "1"}, ABSENT]}]},
        ),
        (
            'attributes.a = "1" OR (attributes.a = "2" AND attributes:b)',
            {"$or": [{"a": ["1"]}, {"a": ["2"], "b": [{"exists": True}]}]},
        ),
        ("(attributes:a AND (attributes:b))", {"a": [{"exists": True}], "b": [{"exists": True}]}),
    ],
)
def test_pubsub_filter_becomes_a_filter_of_headers(text, headers):
    assert translate("pubsub", text).match == {"filter": {"headers": headers}}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (
            'attributes:a AND attributes.a != "x\'y"',
            """EXISTS(headers."a") AND (headers."a" <> 'x''y' OR headers."a" IS NULL)""",
        ),
        (
            'hasPrefix(attributes.a, "5%") AND -hasPrefix(attributes.a, "5%_!")',
            """headers."a" LIKE '5!%%' ESCAPE '!' AND """
            """(headers."a" NOT LIKE '5!%!_!!%' ESCAPE '!' OR headers."a" IS NULL)""",
        ),
        (
            "(attributes:a OR attributes:b) AND (attributes:c OR -attributes:d)",
            '(EXISTS(headers."a") OR EXISTS(headers."b"))'
            ' AND (EXISTS(headers."c") OR NOT EXISTS(headers."d"))',
        ),
    ],
)
def test_pubsub_filter_becomes_a_condition_when_names_repeat(text, where):
    translation = translate("pubsub", text)

    assert translation.match == {"where": where}
    assert WHERE_NOTE in translation.notes


def test_pubsub_note_names_missing_attributes():
    assert translate("pubsub", 'attributes.a != "x"').notes == (MISSING_NOTE,)
    assert translate("pubsub", "NOT attributes:a").notes == ()


@pytest.mark.parametrize("system", ["pubsub", "jms"])
def test_empty_text_takes_every_message(system):
    assert translate(system, " ") == Translation({})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("attributes:a AND attributes:b OR attributes:c", "Put parentheses between AND and OR."),
        ("attributes.a = 1", "A value is a text in double quotes."),
        ("attributes.a = 'x'", "''' is not expected here."),
        ('attributes.a = "x', "A quotation mark is not closed."),
        ('attributes.a = "\\q"', "'\\q' is not an escape sequence."),
        ('attributes.a = "\\ud800"', "'\\ud800' is not an escape sequence."),
        ("attributes:a attributes:b", "'attributes' is not expected here."),
        ('attributes.a > "x"', "'>' is not expected here."),
        ("attributes:a AND", "The filter is not complete."),
        ("(attributes:a", "The filter is not complete."),
        ("attributes:a)", "')' is not expected here."),
        ("attributes", "The filter is not complete."),
        ('body.a = "x"', "'body' is not expected here."),
        ('hasprefix(attributes.a, "x")', "'hasprefix' is not expected here."),
        ("hasPrefix(attributes:a)", "':' is not expected here."),
        ('attributes:"$or"', "A header named '$or' cannot be matched."),
        ("(" * 4_000, "A filter has at most 16 levels of parentheses."),
        ("NOT " * 1_000 + "attributes:a", "A filter has at most 16 levels of parentheses."),
        ("-" * 4_000, "A filter has at most 16 levels of parentheses."),
        ("x" * 4_097, "A filter has at most 4096 characters."),
        (7, "A filter is a text."),
    ],
)
def test_pubsub_filter_is_refused_with_a_reason(text, reason):
    with pytest.raises(TranslationRefused) as refusal:
        translate("pubsub", text)

    assert refusal.value.reason == reason


TERMS = st.sampled_from(
    [
        "attributes:a", "attributes:b", 'attributes.a = "x"', 'attributes.a != "x"',
        'attributes.b != "xy"', 'hasPrefix(attributes.a, "x")', 'hasPrefix(attributes.b, "xy")',
    ]
)  # fmt: skip
FILTERS = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT {}".format, inner),
    ),
    max_leaves=6,
)
VALUES = st.sampled_from([None, "x", "xy", "y"])
PYTHON = {
    'attributes.a = "x"': "a == 'x'",
    'attributes.a != "x"': "a != 'x'",
    'attributes.b != "xy"': "b != 'xy'",
    'hasPrefix(attributes.a, "x")': "(a or '').startswith('x')",
    'hasPrefix(attributes.b, "xy")': "(b or '').startswith('xy')",
    "attributes:a": "(a is not None)",
    "attributes:b": "(b is not None)",
    "AND": "and",
    "OR": "or",
    "NOT": "not",
}


def accepts(patterns: list[object], value: str | None) -> bool:
    """Evaluate the patterns that translations use, any of which must hold."""
    tests = {
        "exists": lambda flag: (value is not None) is flag,
        "prefix": lambda prefix: value is not None and value.startswith(prefix),
        "anything-but": lambda term: (
            value is not None
            and not (value.startswith(term["prefix"]) if isinstance(term, dict) else value == term)
        ),
    }
    return any(
        all(tests[name](term) for name, term in pattern.items())
        if isinstance(pattern, dict)
        else value == pattern
        for pattern in patterns
    )


def selects(headers: dict[str, Any], message: dict[str, str]) -> bool:
    return all(
        any(selects(alternative, message) for alternative in patterns)
        if name == "$or"
        else accepts(patterns, message.get(name))
        for name, patterns in headers.items()
    )


@given(FILTERS, VALUES, VALUES)
def test_pubsub_translation_selects_the_same_messages(text, a, b):
    expression = text
    for term, python in PYTHON.items():
        expression = expression.replace(term, python)
    message = {name: value for name, value in (("a", a), ("b", b)) if value is not None}

    match: Any = translate("pubsub", text).match

    expected = eval(expression, {"a": a, "b": b})
    if "where" in match:
        assert SqlCondition(match["where"]).holds(with_headers(**message)) is expected
    else:
        assert selects(match["filter"]["headers"], message) is expected


@pytest.mark.parametrize(
    ("condition", "match"),
    [
        (
            "sys.Label LIKE '%bus%' AND quantity + 1 > limit",
            {"where": "sys.Label LIKE '%bus%' AND quantity + 1 > limit"},
        ),
        ("size > 5 AND user.key = 'k'", {"where": "headers.size > 5 AND user.key = 'k'"}),
        (
            "EXISTS(body) OR 'size' = \"size\"",
            {"where": "EXISTS(headers.body) OR 'size' = \"size\""},
        ),
        ("1=1", {}),
        ("1 = 1", {}),
        ("1=0", {"where": "1=0"}),
        ({"sqlExpression": "a = 1"}, {"where": "a = 1"}),
        ({"sqlFilter": {"sqlExpression": "a = 1", "compatibilityLevel": 20}}, {"where": "a = 1"}),
        (
            {"label": "red", "correlationId": "high"},
            {"filter": {"subject": ["red"], "headers": {"CorrelationId": ["high"]}}},
        ),
        (
            {"correlationFilter": {"ContentType": "text/plain", "properties": {"a": "b", "n": 1}}},
            {"filter": {"content_type": ["text/plain"], "headers": {"a": ["b"], "n": [1]}}},
        ),
        ({"sessionId": "s"}, {"filter": {"key": ["s"]}}),
    ],
)
def test_service_bus_filter_becomes_a_match(condition, match):
    assert translate("service_bus", condition).match == match


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("newid() = a", "Functions are not supported: 'newid'."),
        ("a = @parameter", "'@' is not supported."),
        ("my.a = 1", "'my' is not a field of a message."),
        ({}, "A correlation filter names at least one property."),
        ({"colour": "red"}, "A correlation filter has no property 'colour'."),
        ({"size": "1"}, "A correlation filter has no property 'size'."),
        ({"label": 1}, "The property 'label' is a text."),
        ({"properties": {"a": True}}, "The property 'a' is neither a text nor a number."),
        ({"properties": {"$or": "x"}}, "A header named '$or' cannot be matched."),
        ({"properties": []}, "The properties of a correlation filter are an object."),
        ({"sqlExpression": 1}, "The SQL expression of a filter is a text."),
        ({"sqlFilter": "a = 1"}, "A filter is an object."),
        (1, "A filter is a SQL text or an object."),
    ],
)
def test_service_bus_filter_is_refused_with_a_reason(condition, reason):
    with pytest.raises(TranslationRefused) as refusal:
        translate("service_bus", condition)

    assert reason in refusal.value.reason


def test_selector_becomes_a_condition():
    text = "JMSType = 'car' AND color = 'blue' AND weight / 2 > 1250 AND meta IS NULL"

    translation = translate("jms", text)

    assert translation.match == {"where": text.replace("meta", "headers.meta")}
    assert len(translation.notes) == 2


@pytest.mark.parametrize("condition", [1, "a ~ 'x'", "upper(a) = 'X'", "a = 5L"])
def test_selector_is_refused(condition):
    with pytest.raises(TranslationRefused):
        translate("jms", condition)


HEADERS = {"format": "pdf", "type": "report"}


def binding(exchange_type: str, key: object = "", **arguments: object) -> dict[str, object]:
    arguments = {name.replace("_", "-"): value for name, value in arguments.items()}
    return {"exchange_type": exchange_type, "routing_key": key, "arguments": arguments}


@pytest.mark.parametrize(
    ("condition", "match"),
    [
        (binding("fanout", "ignored"), {}),
        (binding("direct", "email"), {"subject": "email"}),
        (binding("direct"), {"filter": {"subject": [""]}}),
        (binding("topic", "order.*"), {"subject": "order.*"}),
        (binding("topic", "#.error"), {"subject": "#.error"}),
        (binding("topic", "#"), {"subject": "#"}),
        (
            binding("headers", **HEADERS),
            {"filter": {"headers": {"format": ["pdf"], "type": ["report"]}}},
        ),
        (
            binding("headers", x_match="any", **HEADERS),
            {
                "filter": {
                    "$or": [{"headers": {"format": ["pdf"]}}, {"headers": {"type": ["report"]}}]
                }
            },
        ),
        (binding("headers", x_match="any", a="b"), {"filter": {"headers": {"a": ["b"]}}}),
        (binding("headers", x_a="b"), {}),
        (
            binding("headers", x_match="all-with-x", x_a="b"),
            {"filter": {"headers": {"x-a": ["b"]}}},
        ),
        (binding("headers", a=None), {"filter": {"headers": {"a": [{"exists": True}]}}}),
        (binding("headers", a=5), {"filter": {"headers": {"a": [5]}}}),
        ({"exchange_type": "headers"}, {}),
    ],
)
def test_binding_becomes_a_match(condition, match):
    assert translate("rabbitmq", condition).match == match


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (binding("direct", "order.*"), "A subject must not contain '*', '#' or '>'."),
        (binding("topic", "order.a*"), "A wildcard '*', '#' or '>' must be a whole word."),
        (binding("topic", "order.>"), "A subject must not contain '*', '#' or '>'."),
        (binding("topic", "a..b"), "A subject is words with one dot between each two."),
        (binding("topic", "a b"), "A subject must not contain whitespace or control characters."),
        (binding("topic", "a" * 256), "At most 255 bytes."),
        (binding("topic", ".".join("a" * 33)), "At most 32 words."),
        (binding("topic", 5), "The routing_key is a text."),
        (binding("x-consistent-hash", "5"), "Use a route with a spread instead"),
        (binding("x-unknown"), "The exchange_type must be direct, fanout, topic or headers."),
        (binding("headers", x_match="some"), "x-match must be one of"),
        (binding("headers", x_match={}), "x-match must be one of"),
        (binding("headers", x_match="any"), "A binding that needs any of no headers"),
        (binding("headers", a=True), "The argument 'a' is neither a text nor a number."),
        (binding("headers", a={}), "The argument 'a' is neither a text nor a number."),
        ({"exchange_type": "headers", "arguments": [1]}, "The arguments of a binding"),
        ({"exchange_type": "fanout", "vhost": "/"}, "A binding has no field 'vhost'."),
        ("order.*", "A binding is an object with exchange_type and routing_key."),
    ],
)
def test_binding_is_refused_with_a_reason(condition, reason):
    with pytest.raises(TranslationRefused) as refusal:
        translate("rabbitmq", condition)

    assert reason in refusal.value.reason


def test_unknown_system_is_refused():
    with pytest.raises(TranslationRefused, match="jms, pubsub, rabbitmq, service_bus"):
        translate("kafka", "")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(
    st.sampled_from(["jms", "pubsub", "rabbitmq", "service_bus"]),
    JSON
    | st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("arguments", "routing_key", "sqlFilter", "correlationFilter", "label"), JSON
        )
        | {"exchange_type": st.sampled_from(["direct", "topic", "headers"])},
    ),
)
def test_random_condition_is_translated_or_refused(system, condition):
    reason, translation = "", None
    try:
        translation = translate(system, condition)
    except TranslationRefused as error:
        reason = error.reason

    assert (translation is None) is reason.endswith(".")
    assert json.dumps(translation and translation.match)


@pytest.mark.parametrize(
    ("system", "condition"),
    [
        ("pubsub", 'hasPrefix(attributes.a, "x") AND NOT attributes:b'),
        ("jms", "JMSPriority > 4 AND region LIKE 'e%'"),
        ("rabbitmq", {"exchange_type": "topic", "routing_key": "order.*.#"}),
        ("service_bus", "sys.Label = 'a' OR retries < 3"),
    ],
)
def test_translation_is_a_match_of_the_wire_form(system, condition):
    assert parse_matches(translate(system, condition).match)
