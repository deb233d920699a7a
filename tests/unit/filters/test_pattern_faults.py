from typing import Any

import msgspec
import pytest

from storage.domain import limits
from storage.domain.filters.patterns import parse_pattern
from storage.domain.filters.reasons import PatternInvalid

ANYTHING_BUT = "Value of anything-but must be an array or single string/number value."
IN_LIST = "Inside anything but list, start|null|boolean is not supported."
MIXED = (
    "Inside anything but list, either all values are number or string, mixed type is not supported"
)
SCALAR = "Match value must be String, number, true, false, or null"
COMPLEX = (
    "Rule is too complex - try using fewer wildcard characters or fewer repeating character "
    "sequences after a wildcard character"
)
FAULTS = [
    ('"x"', "", "Filter is not an object"),
    ("[]", "", "Filter is not an object"),
    ("{}", "", "Empty objects are not allowed"),
    ('{"x": {}}', "/x", "Empty objects are not allowed"),
    ('{"x": []}', "/x", "Empty arrays are not allowed"),
    ('{"x": 5}', "/x", '"x" must be an object or an array'),
    ('{"x": null}', "/x", '"x" must be an object or an array'),
    ('{"a": {"b/c~d": "v"}}', "/a/b~1c~0d", '"b/c~d" must be an object or an array'),
    ('{"x": ["a", ["b"]]}', "/x/1", SCALAR),
    ('{"x": [{"EXISTS": true}]}', "/x/0", "Unrecognized match type EXISTS"),
    ('{"x": [1, {}]}', "/x/1", "Only one key allowed in match expression"),
    ('{"x": [{"suffix": "a", "prefix": "b"}]}', "/x/0", "Only one key allowed in match expression"),
    ('{"x": [{"prefix": 1}]}', "/x/0", "prefix match pattern must be a string"),
    ('{"x": [{"prefix": ["a"]}]}', "/x/0", "prefix match pattern must be a string"),
    ('{"x": [{"prefix": {"wildcard": "a"}}]}', "/x/0", "Unsupported prefix pattern: wildcard"),
    (
        '{"x": [{"prefix": {"equals-ignore-case": 1}}]}',
        "/x/0",
        "equals-ignore-case match pattern must be a string",
    ),
    ('{"x": [{"suffix": null}]}', "/x/0", "suffix match pattern must be a string"),
    ('{"x": [{"suffix": {"prefix": "a"}}]}', "/x/0", "Unsupported suffix pattern: prefix"),
    (
        '{"x": [{"equals-ignore-case": ["a"]}]}',
        "/x/0",
        "equals-ignore-case match pattern must be a string",
    ),
    ('{"x": [{"wildcard": 1}]}', "/x/0", "wildcard match pattern must be a string"),
    ('{"x": [{"wildcard": "abc**def"}]}', "/x/0", "Consecutive wildcard characters at pos 4"),
    ('{"x": [{"wildcard": "é**"}]}', "/x/0", "Consecutive wildcard characters at pos 3"),
    ('{"x": [{"wildcard": "a\\\\b"}]}', "/x/0", "Invalid escape character at pos 2"),
    ('{"x": [{"wildcard": "a\\\\"}]}', "/x/0", "Invalid escape character at pos 2"),
    ('{"x": [{"wildcard": "*:*:*:*:*:event-bus/*"}]}', "/x/0", COMPLEX),
    ('{"x": [{"numeric": 5}]}', "/x/0", "Value of numeric must be an array."),
    ('{"x": [{"numeric": []}]}', "/x/0", "Invalid member in numeric match: ]"),
    ('{"x": [{"numeric": [5]}]}', "/x/0", "Invalid member in numeric match: 5"),
    ('{"x": [{"numeric": ["!=", 5]}]}', "/x/0", "Unrecognized numeric range operator: !="),
    ('{"x": [{"numeric": ["="]}]}', "/x/0", "Value of equals must be numeric"),
    ('{"x": [{"numeric": ["=", "5"]}]}', "/x/0", "Value of equals must be numeric"),
    ('{"x": [{"numeric": [">", true]}]}', "/x/0", "Value of > must be numeric"),
    ('{"x": [{"numeric": ["<=", null]}]}', "/x/0", "Value of <= must be numeric"),
    ('{"x": [{"numeric": ["=", 1, "<", 2]}]}', "/x/0", "Too many elements in numeric expression"),
    ('{"x": [{"numeric": ["<", 1, ">", 0]}]}', "/x/0", "Too many elements in numeric expression"),
    ('{"x": [{"numeric": [">", 0, ">", 0]}]}', "/x/0", "Bad numeric range operator: >"),
    ('{"x": [{"numeric": [">", 0, 5]}]}', "/x/0", "Bad value in numeric range: 5"),
    ('{"x": [{"numeric": [">", 0, "<"]}]}', "/x/0", "Value of < must be numeric"),
    (
        '{"x": [{"numeric": [">", 0, "<", 5, 6]}]}',
        "/x/0",
        "Too many terms in numeric range expression",
    ),
    ('{"x": [{"numeric": [">", 5, "<", 5]}]}', "/x/0", "Bottom must be less than top"),
    ('{"x": [{"numeric": [">=", 6, "<=", 5]}]}', "/x/0", "Bottom must be less than top"),
    (
        '{"x": [{"numeric": [">", 5000000001]}]}',
        "/x/0",
        "Value must be between -5.0E9 and 5.0E9, inclusive",
    ),
    (
        '{"x": [{"numeric": [">", 0.0000001]}]}',
        "/x/0",
        "Value of numeric must have at most 6 decimals",
    ),
    ('{"x": [{"exists": "true"}]}', "/x/0", "exists match pattern must be either true or false."),
    ('{"x": [{"exists": 1}]}', "/x/0", "exists match pattern must be either true or false."),
    ('{"x": [{"cidr": 5}]}', "/x/0", "prefix match pattern must be a string"),
    ('{"x": [{"cidr": "10.0.0.0"}]}', "/x/0", "Malformed CIDR, one '/' required"),
    ('{"x": [{"cidr": "10.0.0.0/8/8"}]}', "/x/0", "Malformed CIDR, one '/' required"),
    ('{"x": [{"cidr": "10.0.0.0/a"}]}', "/x/0", "Malformed CIDR, mask bits must be an integer"),
    ('{"x": [{"cidr": "10.0.0.300/8"}]}', "/x/0", "Nonstandard IP address: 10.0.0.300"),
    ('{"x": [{"cidr": "10.0.0.0/33"}]}', "/x/0", "Malformed CIDR, mask bits must not be above 32"),
    ('{"x": [{"cidr": "::/129"}]}', "/x/0", "Malformed CIDR, mask bits must not be above 128"),
    ('{"x": [{"anything-but": null}]}', "/x/0", ANYTHING_BUT),
    ('{"x": [{"anything-but": true}]}', "/x/0", ANYTHING_BUT),
    ('{"x": [{"anything-but": []}]}', "/x/0", "Empty arrays are not allowed"),
    ('{"x": [{"anything-but": ["a", null]}]}', "/x/0", IN_LIST),
    ('{"x": [{"anything-but": [1, true]}]}', "/x/0", IN_LIST),
    ('{"x": [{"anything-but": [["a"]]}]}', "/x/0", IN_LIST),
    ('{"x": [{"anything-but": ["a", 1]}]}', "/x/0", MIXED),
    (
        '{"x": [{"anything-but": {"numeric": ["=", 1]}}]}',
        "/x/0",
        "Unsupported anything-but pattern: numeric",
    ),
    ('{"x": [{"anything-but": {}}]}', "/x/0", "Only one key allowed in match expression"),
    (
        '{"x": [{"anything-but": {"prefix": 1}}]}',
        "/x/0",
        "prefix/suffix match pattern must be a string",
    ),
    (
        '{"x": [{"anything-but": {"suffix": {"equals-ignore-case": "a"}}}]}',
        "/x/0",
        "prefix/suffix match pattern must be a string",
    ),
    ('{"x": [{"anything-but": {"prefix": ""}}]}', "/x/0", "Null prefix/suffix not allowed"),
    ('{"x": [{"anything-but": {"suffix": ["a", ""]}}]}', "/x/0", "Null prefix/suffix not allowed"),
    ('{"x": [{"anything-but": {"prefix": []}}]}', "/x/0", "Empty arrays are not allowed"),
    (
        '{"x": [{"anything-but": {"wildcard": [1]}}]}',
        "/x/0",
        "wildcard match pattern must be a string",
    ),
    (
        '{"x": [{"anything-but": {"wildcard": "a**"}}]}',
        "/x/0",
        "Consecutive wildcard characters at pos 2",
    ),
    ('{"$or": [{"a": [1]}]}', "/$or", '"$or" must have at least two objects'),
    ('{"$or": {"a": [1]}}', "/$or", '"$or" must be an array of objects'),
    ('{"$or": [{"a": [1]}, 5]}', "/$or/1", '"$or" must be an array of objects'),
    ('{"$or": [{"a": [1]}, {}]}', "/$or/1", "Empty objects are not allowed"),
    ('{"$or": [{"a": [1]}, {"b": {"c": []}}]}', "/$or/1/b/c", "Empty arrays are not allowed"),
]


def fault_of(pattern) -> tuple[str, str]:
    with pytest.raises(PatternInvalid) as raised:
        parse_pattern(pattern, "/match/filter")
    return raised.value.pointer.removeprefix("/match/filter"), raised.value.reason


@pytest.mark.parametrize(("pattern", "pointer", "reason"), FAULTS)
def test_pattern_is_refused_with_its_reason(pattern, pointer, reason):
    assert fault_of(msgspec.json.decode(pattern)) == (pointer, reason)


def alternatives(count: int) -> dict[str, Any]:
    return {"$or": [{f"f{nth}": [1]} for nth in range(count)]}


def test_pattern_is_refused_above_its_size():
    text = "x" * (limits.FILTER_BYTES_MAX - len('{"a":[""]}'))

    assert parse_pattern({"a": [text]})
    assert fault_of({"a": [text + "x"]}) == ("", "Filter is larger than 65536 bytes")


def test_pattern_is_refused_when_nested_too_deeply():
    pattern: dict[str, Any] = {"a": [1]}
    for _ in range(limits.FILTER_DEPTH_MAX - 1):
        pattern = {"a": pattern}

    assert parse_pattern(pattern)
    assert fault_of({"a": pattern})[1] == "Filter is nested deeper than 32 levels"


@pytest.mark.parametrize("pattern", [{1: [1]}, {"a": {1: [1]}}, {"a": [object()]}])
def test_pattern_is_refused_if_it_is_not_json(pattern):
    assert fault_of(pattern)[1] == "Filter is not valid JSON"


def test_pattern_is_refused_above_its_combinations():
    most = {"a": alternatives(10), "b": alternatives(10), "c": alternatives(10)}

    assert len(parse_pattern(most)) == limits.FILTER_COMBINATIONS_MAX
    assert fault_of({**most, "d": alternatives(2)}) == (
        "",
        "Rule is too complex: at most 1000 combinations of $or",
    )


def test_pattern_is_refused_above_its_conditions():
    fields = {f"g{nth}": [1] for nth in range(100)}

    assert fault_of({**alternatives(300), **fields})[1].startswith("Rule is too complex")
