"""Transforms: the content that a route makes of a message, and the faults of definitions."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.topics.routed_message import TransformFailed
from tests.unit.topics.messages import JSON_TYPE, message, spec, transform

ORDER = b'{"order": {"id": 7, "total": 1.5, "lines": ["a", "b"], "note": "50% \\"off\\"", "gone": null}, "vip": true}'
BIG = b'{"number": 12345678901234567890123, "price": 1.10}'
PATHS = {
    "order": "/body/order",
    "total": "/body/order/total",
    "second": "/body/order/lines/1",
    "note": "/body/order/note",
    "gone": "/body/order/gone",
    "none": "/body/order/none",
    "vip": "/body/vip",
    "tenant": "/headers/tenant",
    "retries": "/headers/retries",
}
HEADERS = (
    ("tenant", "", b"t7"),
    ("retries", "Number", b"3"),
    ("debug", "", b"on"),
    JSON_TYPE,
)


def body_of(template, body=ORDER, **fields) -> tuple[bytes, str]:
    definition = transform(paths=PATHS, template=template, **fields)
    spec(transform=definition).check()
    content = definition.transformer.apply(message(body, headers=HEADERS))
    return content.body, content.content_type


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ({"o": "<order>"}, None),
        ({"total": "<total>"}, b'{"total":1.5}'),
        (["<vip>", "<second>"], b'[true,"b"]'),
        ({"t": "total: <total>"}, b'{"t":"total: 1.5"}'),
        ({"t": "<second><second>"}, b'{"t":"bb"}'),
        ({"note": "<note>"}, b'{"note":"50% \\"off\\""}'),
        ({"note": "a <note>."}, b'{"note":"a 50% \\"off\\"."}'),
        ({"none": "<none>"}, b'{"none":null}'),
        ({"none": "a<none>b"}, b'{"none":"ab"}'),
        ({"gone": "<gone>"}, b'{"gone":null}'),
        ({"gone": "a <gone>"}, b'{"gone":"a null"}'),
        ({"tenant": "<tenant>", "retries": "<retries>"}, b'{"tenant":"t7","retries":3}'),
        ({"s": "<subject>", "k": "<key>"}, b'{"s":"order.created","k":"c7"}'),
        ({"id": "<id>"}, b'{"id":"0123456789abcdef-2-17"}'),
        ({"at": "<published_at>"}, b'{"at":"2026-01-01T00:00:00.123Z"}'),
        ({"from": "<topic>/<route>"}, b'{"from":"orders/billing"}'),
        ({"<total>": 1}, b'{"<total>":1}'),
        ({"t": r"\<total> <total>"}, b'{"t":"<total> 1.5"}'),
        ({"t": r"\\<total>"}, b'{"t":"\\\\1.5"}'),
        ({"t": "a < b > c <>"}, b'{"t":"a < b > c <>"}'),
        ({"t": r"\n"}, b'{"t":"\\\\n"}'),
        ([], b"[]"),
        ({"a": {}, "b": [[], 1, None, True, "é"]}, '{"a":{},"b":[[],1,null,true,"é"]}'.encode()),
        (7, b"7"),
        (False, b"false"),
    ],
)
def test_template_makes_json(template, expected):
    body, content_type = body_of(template)

    assert content_type == "application/json"
    if expected is None:
        assert msgspec.json.decode(body) == {"o": msgspec.json.decode(ORDER)["order"]}
    else:
        assert body == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Order <total> of <tenant>", b"Order 1.5 of t7"),
        ("<order>", None),
        ("<second>", b"b"),
        ("<none>.", b"."),
        ("<vip> <note>", b'true 50% "off"'),
        ("", b""),
        ("\\<x>", b"<x>"),
    ],
)
def test_template_makes_text(template, expected):
    body, content_type = body_of(template)

    if expected is None:
        assert content_type == "application/json"
        assert msgspec.json.decode(body) == msgspec.json.decode(ORDER)["order"]
    else:
        assert (body, content_type) == (expected, "")


@pytest.mark.parametrize(
    ("body", "template", "expected"),
    [
        (BIG, {"m": "<message>"}, b'{"m":' + BIG + b"}"),
        (BIG, "<message>", BIG),
        (b"plain", {"m": "<message>"}, b'{"m":"plain"}'),
        (b"plain", {"m": "is <message>"}, b'{"m":"is plain"}'),
        (b'{"a": "b"}', {"m": "is <message>"}, b'{"m":"is {\\"a\\": \\"b\\"}"}'),
        (b"\xff\x00", {"m": "<message>"}, b'{"m":"/wA="}'),
        (b"\xff\x00", "<message>", b"\xff\x00"),
        (b"\xff\x00", "is <message>", b"is /wA="),
        (b"plain", {"v": "<vip>"}, b'{"v":null}'),
    ],
)
def test_template_has_whole_body(body, template, expected):
    assert body_of(template, body)[0] == expected


def test_path_replaces_name_that_is_always_there():
    definition = transform(paths={"id": "/body/order/id", "message": "/key"}, template="<message>")

    assert definition.transformer.apply(message(ORDER)).body == b"c7"
    template = {"order": "<id>", "m": "<message>"}
    definition = transform(paths=definition.paths, template=template)
    assert definition.transformer.apply(message(ORDER)).body == b'{"order":7,"m":"c7"}'


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("/order/lines", (b'["a","b"]', "application/json")),
        ("/order/lines/0", (b"a", "")),
        ("/order/total", (b"1.5", "application/json")),
        ("/none", (b"null", "application/json")),
        ("/order/gone", (b"null", "application/json")),
    ],
)
def test_select_takes_part_of_body(select, expected):
    content = transform(select=select).transformer.apply(message(ORDER, headers=HEADERS))

    assert (content.body, content.content_type) == expected


def test_transform_sets_headers_and_subject():
    definition = transform(
        paths=PATHS,
        headers={"set": {"tenant": "<tenant>.<total>", "new": "<none>"}, "remove": ["debug", "x"]},
        subject="total.<vip>",
    )

    content = definition.transformer.apply(message(ORDER, headers=HEADERS))

    assert content.body == ORDER
    assert content.content_type == "application/json"
    assert content.subject == "total.true"
    assert content.headers == (
        ("retries", "Number", b"3"),
        ("tenant", "", b"t7.1.5"),
        ("new", "", b""),
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"template": {"a": "<none>"}},
        {"template": "a <none>"},
        {"template": "<none>"},
        {"select": "/none"},
        {"headers": {"set": {"a": "<none>"}}},
        {"subject": "<none>"},
    ],
)
def test_strict_transform_fails_without_value(fields):
    definition = transform(paths=PATHS, strict=True, **fields)

    with pytest.raises(TransformFailed, match="/none"):
        definition.transformer.apply(message(ORDER))


def test_strict_transform_accepts_null_and_empty_facts():
    definition = transform(paths=PATHS, strict=True, template={"a": "<gone>", "k": "<key>"})

    assert definition.transformer.apply(message(ORDER, key="")).body == b'{"a":null,"k":""}'


@pytest.mark.parametrize("subject", ["<message>", "a.*", "<none>.x", "x" * 300])
def test_invalid_subject_fails_transform(subject):
    definition = transform(paths=PATHS, subject=subject)

    with pytest.raises(TransformFailed, match="subject is invalid"):
        definition.transformer.apply(message(b"two words"))


def test_result_is_bounded(monkeypatch):
    monkeypatch.setattr(limits, "TRANSFORM_RESULT_BYTES_MAX", 100)
    definition = transform(template=["<message>"] * 20)

    assert definition.transformer.apply(message(b"1")).body == b"[" + b"1," * 19 + b"1]"
    with pytest.raises(TransformFailed, match="more than 100 bytes"):
        definition.transformer.apply(message(b"12345"))


NAMES = st.sampled_from(["a", "b", "0", "é", "a/b", "~", ""])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
POINTERS = st.lists(
    NAMES.map(lambda name: name.replace("~", "~0").replace("/", "~1")), max_size=3
).map(lambda names: "/".join(["/body", *names]))
TEXTS = st.lists(
    st.sampled_from(["<p>", "<q>", "<message>", "<id>", "<key>", "\\<", "\\", "<", ">", '"', " é"]),
    max_size=4,
).map("".join)
TEMPLATES = st.recursive(
    TEXTS | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
BODIES = VALUES.map(msgspec.json.encode) | st.binary(min_size=1, max_size=20)


@given(BODIES, POINTERS, POINTERS, TEMPLATES, TEXTS)
def test_transform_has_result_for_any_message(body, first, second, template, header):
    definition = transform(
        paths={"p": first, "q": second}, template=template, headers={"set": {"h": header}}
    )
    spec(transform=definition).check()

    content = definition.transformer.apply(message(body))

    again = transform(**msgspec.to_builtins(definition)).transformer.apply(message(body))
    assert content == again
    assert len(content.body) <= limits.TRANSFORM_RESULT_BYTES_MAX
    if content.content_type == "application/json":
        msgspec.json.decode(content.body)


@given(BODIES, TEMPLATES, st.integers(0, 200))
def test_result_never_exceeds_its_bound(body, template, most):
    definition = transform(paths={"p": "/body", "q": "/body/a"}, template=template)
    before = limits.TRANSFORM_RESULT_BYTES_MAX
    limits.TRANSFORM_RESULT_BYTES_MAX = most
    try:
        content = definition.transformer.apply(message(body))
        assert len(content.body) <= most or content.body == body
    except TransformFailed:
        pass
    finally:
        limits.TRANSFORM_RESULT_BYTES_MAX = before


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("fields", "pointer", "code"),
    [
        ({"select": "/a", "template": "x"}, "/transform/template", "exclusive"),
        ({"select": "a"}, "/transform/select", "invalid_pointer"),
        ({"select": "/a~2"}, "/transform/select", "invalid_pointer"),
        ({"paths": {"id": "/other/x"}}, "/transform/paths/id", "invalid_pointer"),
        ({"paths": {"id": "body"}}, "/transform/paths/id", "invalid_pointer"),
        ({"paths": {"id": ""}}, "/transform/paths/id", "invalid_pointer"),
        ({"paths": {"id": "/body/~"}}, "/transform/paths/id", "invalid_pointer"),
        ({"paths": {"id": "/body/" + "x" * 1_024}}, "/transform/paths/id", "too_long"),
        ({"paths": {"a b": "/key"}}, "/transform/paths/a b", "invalid_name"),
        ({"paths": {"a/b": "/key"}}, "/transform/paths/a~1b", "invalid_name"),
        ({"paths": {f"n{n}": "/key" for n in range(101)}}, "/transform/paths", "too_many"),
        ({"template": "<nope>"}, "/transform/template", "unknown_name"),
        ({"template": {"a": [1, "x <nope>"]}}, "/transform/template/a/1", "unknown_name"),
        ({"template": "x" * 8_191}, "/transform/template", "too_large"),
        ({"template": nested(33)}, "/transform/template", "too_deep"),
        ({"subject": "a.<nope>"}, "/transform/subject", "unknown_name"),
        ({"headers": {"set": {":x": "1"}}}, "/transform/headers/set/:x", "invalid_name"),
        ({"headers": {"set": {"x": "<nope>"}}}, "/transform/headers/set/x", "unknown_name"),
        ({"headers": {"remove": ["a", ""]}}, "/transform/headers/remove/1", "invalid_name"),
        (
            {"headers": {"set": {str(n): "" for n in range(33)}}},
            "/transform/headers/set",
            "too_many",
        ),
    ],
)
def test_fault_of_transform_has_pointer(fields, pointer, code):
    with pytest.raises(ValidationFailed) as refused:
        spec(transform=transform(**fields)).check()

    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [(pointer, code)]


@pytest.mark.parametrize("fields", [{"other": 1}, {"headers": {"add": {}}}, {"paths": {"a": 1}}])
def test_unknown_member_is_refused(fields):
    with pytest.raises(msgspec.ValidationError):
        transform(**fields)
