import msgspec
import pytest

from storage.domain.filters.documents import Document
from storage.domain.filters.patterns import parse_pattern

TABLE = r"""
# literals
{"s": ["a", "b"]}                                | {"s": "a"}                        | yes
{"s": ["a", "b"]}                                | {"s": "c"}                        | no
{"s": ["a", "b"]}                                | {"s": ["x", "b"]}                 | yes
{"s": ["a"]}                                     | {"S": "a"}                        | no
{"s": ["a"]}                                     | {"s": "A"}                        | no
{"s": ["a"]}                                     | {}                                | no
{"s": ["a"]}                                     | {"s": {"a": "a"}}                 | no
{"s": [""]}                                      | {"s": ""}                         | yes
{"s": [""]}                                      | {"s": null}                       | no
{"s": [null]}                                    | {"s": null}                       | yes
{"s": [null]}                                    | {"s": "null"}                     | no
{"s": [null]}                                    | {}                                | no
{"s": [null]}                                    | {"s": []}                         | no
{"s": [null]}                                    | {"s": [null]}                     | yes
{"s": [null]}                                    | {"s": 0}                          | no
{"n": [300]}                                     | {"n": 300.0}                      | yes
{"n": [300]}                                     | {"n": 3.0e2}                      | yes
{"n": [300.0]}                                   | {"n": 300}                        | yes
{"n": [300]}                                     | {"n": "300"}                      | no
{"n": ["300"]}                                   | {"n": 300}                        | no
{"n": [0]}                                       | {"n": -0.0}                       | yes
{"n": [1]}                                       | {"n": true}                       | no
{"n": [0]}                                       | {"n": false}                      | no
{"b": [true]}                                    | {"b": true}                       | yes
{"b": [true]}                                    | {"b": 1}                          | no
{"b": [true]}                                    | {"b": "true"}                     | no
{"b": [false]}                                   | {"b": false}                      | yes
{"b": [false]}                                   | {"b": null}                       | no
{"s": ["a", 1, true, null]}                      | {"s": null}                       | yes
{"s": ["a", 1, true, null]}                      | {"s": 1.0}                        | yes
{"s": ["a", 1, true, null]}                      | {"s": false}                      | no
# prefix and suffix
{"s": [{"prefix": "ab"}]}                        | {"s": "abc"}                      | yes
{"s": [{"prefix": "ab"}]}                        | {"s": "ab"}                       | yes
{"s": [{"prefix": "ab"}]}                        | {"s": "a"}                        | no
{"s": [{"prefix": "ab"}]}                        | {"s": "ABc"}                      | no
{"s": [{"prefix": ""}]}                          | {"s": ""}                         | yes
{"s": [{"prefix": ""}]}                          | {"s": "any"}                      | yes
{"s": [{"prefix": ""}]}                          | {"s": 1}                          | no
{"s": [{"prefix": "1"}]}                         | {"s": 12}                         | no
{"s": [{"prefix": "ab"}]}                        | {"s": ["x", "abx"]}               | yes
{"s": [{"prefix": {"equals-ignore-case": "AB"}}]} | {"s": "aBc"}                     | yes
{"s": [{"prefix": {"equals-ignore-case": "AB"}}]} | {"s": "ba"}                      | no
{"s": [{"prefix": {"equals-ignore-case": "AB"}}]} | {"s": null}                      | no
{"s": [{"suffix": ".png"}]}                      | {"s": "a.png"}                    | yes
{"s": [{"suffix": ".png"}]}                      | {"s": "a.PNG"}                    | no
{"s": [{"suffix": ".png"}]}                      | {"s": "png"}                      | no
{"s": [{"suffix": ""}]}                          | {"s": "x"}                        | yes
{"s": [{"suffix": ""}]}                          | {"s": true}                       | no
{"s": [{"suffix": {"equals-ignore-case": ".PnG"}}]} | {"s": "a.pNg"}                 | yes
{"s": [{"suffix": {"equals-ignore-case": ".PnG"}}]} | {"s": "a.jpg"}                 | no
{"s": [{"prefix": "a"}, {"suffix": "z"}]}        | {"s": "bz"}                       | yes
{"s": [{"prefix": "a"}, {"suffix": "z"}]}        | {"s": "by"}                       | no
# equals-ignore-case
{"s": [{"equals-ignore-case": "Alice"}]}         | {"s": "aLICE"}                    | yes
{"s": [{"equals-ignore-case": "Alice"}]}         | {"s": "alice "}                   | no
{"s": [{"equals-ignore-case": "ÉTÉ"}]}           | {"s": "été"}                      | yes
{"s": [{"equals-ignore-case": "1"}]}             | {"s": 1}                          | no
{"s": [{"equals-ignore-case": ""}]}              | {"s": ""}                         | yes
# wildcard
{"s": [{"wildcard": "a*c"}]}                     | {"s": "abbc"}                     | yes
{"s": [{"wildcard": "a*c"}]}                     | {"s": "ac"}                       | yes
{"s": [{"wildcard": "a*c"}]}                     | {"s": "acd"}                      | no
{"s": [{"wildcard": "a*c"}]}                     | {"s": "xac"}                      | no
{"s": [{"wildcard": "*"}]}                       | {"s": ""}                         | yes
{"s": [{"wildcard": "*"}]}                       | {"s": 1}                          | no
{"s": [{"wildcard": ""}]}                        | {"s": ""}                         | yes
{"s": [{"wildcard": ""}]}                        | {"s": "a"}                        | no
{"s": [{"wildcard": "*a*a*"}]}                   | {"s": "xaxax"}                    | yes
{"s": [{"wildcard": "*a*a*"}]}                   | {"s": "xaxx"}                     | no
{"s": [{"wildcard": "ab*ba"}]}                   | {"s": "aba"}                      | no
{"s": [{"wildcard": "ab*ba"}]}                   | {"s": "abba"}                     | yes
{"s": [{"wildcard": "a*bc*c"}]}                  | {"s": "abc"}                      | no
{"s": [{"wildcard": "a*bc*c"}]}                  | {"s": "abcc"}                     | yes
{"s": [{"wildcard": "a\\*c"}]}                   | {"s": "a*c"}                      | yes
{"s": [{"wildcard": "a\\*c"}]}                   | {"s": "abc"}                      | no
{"s": [{"wildcard": "a\\\\*"}]}                  | {"s": "a\\z"}                     | yes
{"s": [{"wildcard": "a\\\\*"}]}                  | {"s": "az"}                       | no
{"s": [{"wildcard": "*\\*\\**"}]}                | {"s": "x**y"}                     | yes
{"s": [{"wildcard": "*:*:*:*:*/x"}]}             | {"s": "a:b:c:d:e/x"}              | yes
{"s": [{"wildcard": "a.c"}]}                     | {"s": "abc"}                      | no
# numeric
{"n": [{"numeric": ["=", 5]}]}                   | {"n": 5.0}                        | yes
{"n": [{"numeric": ["=", 5]}]}                   | {"n": 5.1}                        | no
{"n": [{"numeric": ["=", 1]}]}                   | {"n": true}                       | no
{"n": [{"numeric": [">", 5]}]}                   | {"n": 5}                          | no
{"n": [{"numeric": [">", 5]}]}                   | {"n": 5.000001}                   | yes
{"n": [{"numeric": [">=", 5]}]}                  | {"n": 5}                          | yes
{"n": [{"numeric": ["<", 5]}]}                   | {"n": 5}                          | no
{"n": [{"numeric": ["<", 5]}]}                   | {"n": -1e300}                     | yes
{"n": [{"numeric": ["<=", 5]}]}                  | {"n": 5}                          | yes
{"n": [{"numeric": [">", 0, "<=", 5]}]}          | {"n": 3.0}                        | yes
{"n": [{"numeric": [">", 0, "<=", 5]}]}          | {"n": 0}                          | no
{"n": [{"numeric": [">", 0, "<=", 5]}]}          | {"n": 5}                          | yes
{"n": [{"numeric": [">=", 0, "<", 5]}]}          | {"n": 0}                          | yes
{"n": [{"numeric": [">=", 0, "<", 5]}]}          | {"n": 5}                          | no
{"n": [{"numeric": [">", 0, "<=", 5]}]}          | {"n": "3"}                        | no
{"n": [{"numeric": [">", 0, "<=", 5]}]}          | {"n": null}                       | no
{"n": [{"numeric": [">=", 0]}]}                  | {"n": true}                       | no
{"n": [{"numeric": [">", 0]}]}                   | {"n": [-1, 2]}                    | yes
{"n": [{"numeric": [">", 5000000000]}]}          | {"n": 5000000001}                 | yes
{"n": [{"numeric": [">", 0.000001]}]}            | {"n": 0.000002}                   | yes
# cidr
{"ip": [{"cidr": "10.0.0.0/24"}]}                | {"ip": "10.0.0.255"}              | yes
{"ip": [{"cidr": "10.0.0.0/24"}]}                | {"ip": "10.0.1.0"}                | no
{"ip": [{"cidr": "10.0.0.0/24"}]}                | {"ip": "10.0.0.256"}              | no
{"ip": [{"cidr": "10.0.0.0/24"}]}                | {"ip": 123}                       | no
{"ip": [{"cidr": "10.0.0.7/24"}]}                | {"ip": "10.0.0.1"}                | yes
{"ip": [{"cidr": "0.0.0.0/0"}]}                  | {"ip": "255.1.2.3"}               | yes
{"ip": [{"cidr": "0.0.0.0/0"}]}                  | {"ip": "::1"}                     | no
{"ip": [{"cidr": "2001:db8::/32"}]}              | {"ip": "2001:db8::5"}             | yes
{"ip": [{"cidr": "2001:db8::/32"}]}              | {"ip": "2001:db9::5"}             | no
{"ip": [{"cidr": "2001:db8::/32"}]}              | {"ip": "2001:db8::5%eth0"}        | no
{"ip": [{"cidr": "10.0.0.0/24"}]}                | {"ip": ""}                        | no
# exists
{"r": [{"exists": true}]}                        | {"r": 0}                          | yes
{"r": [{"exists": true}]}                        | {"r": null}                       | yes
{"r": [{"exists": true}]}                        | {"r": []}                         | no
{"r": [{"exists": true}]}                        | {"r": [[]]}                       | no
{"r": [{"exists": true}]}                        | {"r": [[1]]}                      | yes
{"r": [{"exists": true}]}                        | {"r": {"k": 1}}                   | no
{"r": [{"exists": true}]}                        | {}                                | no
{"r": [{"exists": false}]}                       | {}                                | yes
{"r": [{"exists": false}]}                       | {"r": null}                       | no
{"r": [{"exists": false}]}                       | {"r": {"k": 1}}                   | yes
{"r": [{"exists": false}]}                       | {"r": []}                         | yes
{"a": {"b": [{"exists": false}]}}                | {}                                | yes
{"a": {"b": [{"exists": false}]}}                | {"a": 1}                          | yes
{"a": {"b": [{"exists": false}]}}                | {"a": [{"c": 1}, {"b": 2}]}       | no
{"k": [{"exists": true}, {"prefix": "zzz"}]}     | {"k": "v"}                        | yes
{"k": [{"exists": false}, "x"]}                  | {}                                | yes
{"k": [{"exists": false}, "x"]}                  | {"k": "x"}                        | yes
{"k": [{"exists": false}, "x"]}                  | {"k": "y"}                        | no
{"k": [{"exists": false}, {"exists": true}]}     | {}                                | yes
# anything-but
{"s": [{"anything-but": "init"}]}                | {}                                | no
{"s": [{"anything-but": "init"}]}                | {"s": null}                       | yes
{"s": [{"anything-but": "init"}]}                | {"s": 12}                         | yes
{"s": [{"anything-but": "init"}]}                | {"s": "init"}                     | no
{"s": [{"anything-but": "init"}]}                | {"s": ["init"]}                   | no
{"s": [{"anything-but": "init"}]}                | {"s": ["init", "done"]}           | yes
{"s": [{"anything-but": "init"}]}                | {"s": []}                         | no
{"s": [{"anything-but": ["a", "b"]}]}            | {"s": "b"}                        | no
{"s": [{"anything-but": ["a", "b"]}]}            | {"s": "c"}                        | yes
{"s": [{"anything-but": 5}]}                     | {"s": 5.0}                        | no
{"s": [{"anything-but": 1}]}                     | {"s": true}                       | yes
{"s": [{"anything-but": [1, 2]}]}                | {"s": 3}                          | yes
{"s": [{"anything-but": [1, 2]}]}                | {"s": "1"}                        | yes
{"s": [{"anything-but": {"prefix": "init"}}]}    | {"s": "initial"}                  | no
{"s": [{"anything-but": {"prefix": "init"}}]}    | {"s": "x"}                        | yes
{"s": [{"anything-but": {"prefix": "init"}}]}    | {"s": 5}                          | yes
{"s": [{"anything-but": {"prefix": "init"}}]}    | {}                                | no
{"s": [{"anything-but": {"prefix": ["init", "post"]}}]} | {"s": "post-1"}            | no
{"s": [{"anything-but": {"prefix": ["init", "post"]}}]} | {"s": "pre"}               | yes
{"s": [{"anything-but": {"suffix": ".png"}}]}    | {"s": "a.png"}                    | no
{"s": [{"anything-but": {"suffix": [".png", ".jpg"]}}]} | {"s": "a.gif"}             | yes
{"s": [{"anything-but": {"wildcard": "*/lib/*"}}]} | {"s": "x/lib/y"}                | no
{"s": [{"anything-but": {"wildcard": ["*a", "*b"]}}]} | {"s": "xc"}                  | yes
{"s": [{"anything-but": {"wildcard": ""}}]}      | {"s": ""}                         | no
{"s": [{"anything-but": {"wildcard": ""}}]}      | {"s": "a"}                        | yes
{"s": [{"anything-but": {"equals-ignore-case": "Init"}}]} | {"s": "INIT"}            | no
{"s": [{"anything-but": {"equals-ignore-case": ["a", "B"]}}]} | {"s": "b"}           | no
{"s": [{"anything-but": {"equals-ignore-case": ["a", "B"]}}]} | {"s": "c"}           | yes
# paths
{"a.b": ["x"]}                                   | {"a": {"b": "x"}}                 | yes
{"a": {"b": ["x"]}}                              | {"a.b": "x"}                      | yes
{"a.b.c": ["x"]}                                 | {"a": {"b.c": "x"}}               | yes
{"a": {"b.c": ["x"]}}                            | {"a.b": {"c": "x"}}               | yes
{"a.b": ["x"]}                                   | {"a": {"b": "y"}, "a.b": "x"}     | yes
{"a": {"b": ["x"]}}                              | {"a": [{"b": "y"}, {"b": "x"}]}   | yes
{"a": {"b": ["x"]}}                              | {"a": [[{"b": "x"}]]}             | yes
{"a": {"": ["x"]}}                               | {"a": {"": "x"}}                  | yes
{"a": {"b": ["x"]}}                              | {"a": "{\"b\": \"x\"}"}           | no
{"a": ["x"], "b": ["y"]}                         | {"a": "x", "b": "y", "c": 1}      | yes
{"a": ["x"], "b": ["y"]}                         | {"a": "x", "b": "z"}              | no
{"a": ["x"]}                                     | {"a": "y", "a": "x"}              | yes
{"a": ["x"]}                                     | {"a": "x", "a": "y"}              | no
# arrays
{"a": {"x": [1], "y": [2]}}                      | {"a": [{"x": 1, "y": 9}, {"x": 9, "y": 2}]} | no
{"a": {"x": [1], "y": [2]}}                      | {"a": [{"x": 1, "y": 9}, {"x": 1, "y": 2}]} | yes
{"a": {"x": [1], "y": [2]}}                      | {"a": [{"x": [0, 1], "y": [2, 0]}]} | yes
{"a": {"x": [1]}, "b": {"y": [2]}}               | {"a": [{"x": 0}, {"x": 1}], "b": [{"y": 2}]} | yes
{"a": {"b": {"x": [1]}, "y": [2]}}               | {"a": [{"b": [{"x": 0}, {"x": 1}], "y": 3}, {"y": 2}]} | no
{"a": {"b": {"x": [1]}, "y": [2]}}               | {"a": [{"b": [{"x": 0}, {"x": 1}], "y": 2}]} | yes
{"a": {"b": {"x": [1], "z": [3]}, "y": [2]}}     | {"a": [{"b": [{"x": 1}, {"z": 3}], "y": 2}]} | no
{"a": {"x": [1], "y": [{"exists": false}]}}      | {"a": [{"x": 1}, {"x": 2}]}       | yes
{"a": {"x": [1], "y": [{"exists": false}]}}      | {"a": [{"x": 1}, {"y": 2}]}       | no
{"a": {"x": [1], "y": [{"anything-but": 2}]}}    | {"a": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]} | no
{"a": {"x": [1], "y": [2], "z": [3]}}            | {"a": [{"x": 1, "y": 2}, {"y": 2, "z": 3}, {"x": 1, "z": 3}]} | no
# $or
{"$or": [{"c": [{"numeric": [">", 0]}]}, {"d": [{"numeric": ["<", 10]}]}]} | {"c": 0, "d": 9} | yes
{"$or": [{"c": [{"numeric": [">", 0]}]}, {"d": [{"numeric": ["<", 10]}]}]} | {"c": 0, "d": 10} | no
{"$or": [{"c": [1]}, {"d": [2]}], "e": [3]}      | {"c": 1, "e": 3}                  | yes
{"$or": [{"c": [1]}, {"d": [2]}], "e": [3]}      | {"c": 1, "e": 4}                  | no
{"a": {"$or": [{"c": [1]}, {"d": [2]}]}}         | {"a": {"d": 2}}                   | yes
{"a": {"$or": [{"c": [1]}, {"d": [2]}]}}         | {"d": 2}                          | no
{"$or": [{"a": [1]}, {"$or": [{"b": [2]}, {"c": [3]}], "d": [4]}]} | {"c": 3, "d": 4} | yes
{"$or": [{"a": [1]}, {"$or": [{"b": [2]}, {"c": [3]}], "d": [4]}]} | {"c": 3, "d": 5} | no
{"a": [1, 2], "$or": [{"a": [2, 3]}, {"b": [1]}]} | {"a": 2}                         | yes
{"a": [1, 2], "$or": [{"a": [2, 3]}, {"b": [1]}]} | {"a": 1}                         | no
{"a": {"x": [1], "$or": [{"y": [2]}, {"z": [3]}]}} | {"a": [{"x": 1}, {"y": 2}]}     | no
{"a": {"x": [1], "$or": [{"y": [2]}, {"z": [3]}]}} | {"a": [{"x": 0}, {"x": 1, "z": 3}]} | yes
{"a": {"$or": ["x", "y"]}}                       | {}                                | refused
# patterns that are refused
{"x": []}                                        | {}                                | refused
{"x": 5}                                         | {}                                | refused
{"x": [{"EXISTS": true}]}                        | {}                                | refused
{"x": [{"suffix": "a", "prefix": "b"}]}          | {}                                | refused
{"n": [{"numeric": [">", 0, ">", 0]}]}           | {}                                | refused
{"s": [{"prefix": ["a"]}]}                       | {}                                | refused
"""
ROWS = [
    tuple(cell.strip() for cell in row.rsplit("|", 2))
    for row in TABLE.strip().splitlines()
    if not row.startswith("#")
]


def result(pattern: str, event: str) -> str:
    document = Document("", "", (), event.encode(), {})
    try:
        conjunctions = parse_pattern({"body": msgspec.json.decode(pattern)})
    except ValueError:
        return "refused"
    holds = any(conjunction.holds(document.leaves) for conjunction in conjunctions)
    return "yes" if holds else "no"


@pytest.mark.parametrize(("pattern", "event", "expected"), ROWS)
def test_pattern_matches_as_the_grammar_says(pattern, event, expected):
    assert result(pattern, event) == expected


def test_table_covers_the_grammar():
    assert len(ROWS) > 150


def test_body_without_json_has_no_fields():
    assert result('{"a": [{"exists": false}]}', "not json") == "yes"
    assert result('{"a": [{"anything-but": "x"}]}', "not json") == "no"


@pytest.mark.parametrize(("depth", "expected"), [(16, "yes"), (17, "no")])
def test_values_in_deep_arrays_are_not_visible(depth, expected):
    array = "[" * depth + '"x"' + "]" * depth

    assert result('{"a": ["x"]}', f'{{"a": {array}}}') == expected


def test_consistency_is_fast_for_large_arrays():
    """Two fields of one array, each of which matches thousands of elements, but never the same."""
    event = {"a": [{"x": nth % 2, "y": nth % 2} for nth in range(20_000)]}
    pattern = '{"a": {"x": [0], "y": [1]}}'

    assert result(pattern, msgspec.json.encode(event).decode()) == "no"
