import pytest

from storage.domain.filters.documents import Document
from storage.domain.log.json_body import NOTHING

HEADERS = (
    ("tenant", "", b"t7"),
    ("retries", "Number", b"2"),
    ("price", "Number.decimal", b"2.50"),
    ("tags", "String.Array", b'["a", "b", 1, null]'),
    ("raw", "Binary", b"\x00"),
    ("png", "Binary.png", b"\x00"),
    ("label", "String.label", b"x"),
    ("trace.id", "String", b"y"),
    ("bad", "", b"\xff"),
    (":content_type", "", b"application/json"),
    (":group", "", b"g"),
)
BODY = b'{"total": 5, "a.b": {"c": 1}, "list": [{"x": 1}, {"x": 2}], "none": null}'


def document(body: bytes = BODY, headers=HEADERS, key: str = "c7") -> Document:
    return Document("order.created", key, headers, body, {"topic": "orders", "hops": 0})


def values(path: str) -> list[object]:
    return [value for value, _ in document().leaves(path)]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("subject", ["order.created"]),
        ("key", ["c7"]),
        ("content_type", ["application/json"]),
        ("headers.tenant", ["t7"]),
        ("headers.retries", [2]),
        ("headers.price", [2.5]),
        ("headers.tags", ["a", "b", 1, None]),
        ("headers.raw", []),
        ("headers.png", []),
        ("headers.label", ["x"]),
        ("headers.trace.id", ["y"]),
        ("headers.bad", ["\ufffd"]),
        ("headers.:content_type", []),
        ("headers.:group", []),
        ("headers", []),
        ("body.total", [5]),
        ("body.a.b.c", [1]),
        ("body.list.x", [1, 2]),
        ("body.list", []),
        ("body.none", [None]),
        ("body", []),
        ("meta.topic", ["orders"]),
        ("meta.hops", [0]),
        ("other", []),
        ("subject.x", []),
        ("headers.", []),
        ("", []),
    ],
)
def test_leaves_are_the_scalars_at_a_path(path, expected):
    assert values(path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("subject",), "order.created"),
        (("headers", "trace.id"), "y"),
        (("headers", "tags"), ["a", "b", 1, None]),
        (("headers", "raw"), NOTHING),
        (("body", "a", "b"), {"c": 1}),
        (("body", "a.b", "c"), 1),
        (("body", "list"), [{"x": 1}, {"x": 2}]),
        (("body", "list", "x"), NOTHING),
        (("body", "none"), None),
        (("meta", "hops"), 0),
        (("meta", "none"), NOTHING),
        (("nothing",), NOTHING),
    ],
)
def test_value_is_the_json_at_a_path(path, expected):
    assert document().value(path) == expected


def test_size_counts_body_and_visible_headers():
    headers = (("a", "", b"bc"), (":group", "", b"g"))

    assert document(b"12345", headers).value(("size",)) == 5 + 3


def test_empty_key_and_content_type_are_absent():
    empty = document(b"", (), key="")

    assert empty.value(("key",)) is NOTHING
    assert empty.value(("content_type",)) is NOTHING


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_body_without_json_has_no_leaves(body):
    assert document(body).leaves("body.a") == []
    assert document(body).value(("body",)) is NOTHING


def test_body_of_one_scalar_is_a_leaf():
    assert document(b"7").leaves("body") == [(7, ())]
    assert [value for value, _ in document(b"[7, [8]]").leaves("body")] == [7, 8]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"12", 12),
        (b"-12", -12),
        (b"+1.5", 1.5),
        (b".5", 0.5),
        (b"1e3", 1000.0),
        (b" 7 ", 7),
        (b"12345678901234567890123456789", 12345678901234567890123456789),
        (b"1e999", NOTHING),
        (b"nan", NOTHING),
        (b"1_000", NOTHING),
        (b"0x10", NOTHING),
        (b"", NOTHING),
        (b"9" * 10_000, NOTHING),
    ],
)
def test_number_header_is_a_number(text, expected):
    assert document(headers=(("n", "Number", text),)).value(("headers", "n")) == expected


@pytest.mark.parametrize("text", [b'{"a": 1}', b"x", b'"a"'])
def test_array_header_is_absent_without_an_array(text):
    assert document(headers=(("n", "String.Array", text),)).value(("headers", "n")) is NOTHING


def test_header_repeated_has_its_last_value():
    headers = (("a", "", b"1"), ("a", "Number", b"2"))

    assert document(headers=headers).value(("headers", "a")) == 2
