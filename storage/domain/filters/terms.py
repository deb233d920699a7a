"""Terms of the filter grammar: literals and operators, compiled to tests of a value.

The grammar is that of Amazon EventBridge's event patterns; the reasons of refusals are its texts.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.filters.ranges import Range, parse_range
from storage.domain.filters.reasons import PatternInvalid
from storage.domain.filters.wildcards import Wildcard, parse_wildcard

Test = Callable[[Any], bool]
_FIX = ("prefix", "suffix")
_NESTED = (*_FIX, "wildcard", "equals-ignore-case")


class Term(msgspec.Struct, frozen=True):
    """Operator and its argument; equal terms match the same values."""

    operator: str
    argument: Hashable


def literal_key(value: Any) -> Hashable:
    """Return a key that equal JSON scalars share: 300 and 300.0 are equal, 1 and true are not."""
    return ("boolean", value) if value is True or value is False else value


def parse_term(term: Any) -> Term:
    """Parse an element of a field's array. Raises PatternInvalid."""
    if isinstance(term, dict):
        operator, argument = _only_item(term)
        if operator not in _PARSERS:
            raise PatternInvalid(f"Unrecognized match type {operator}")
        return _PARSERS[operator](argument)
    if term is None or isinstance(term, str | int | float):
        return Term("literal", literal_key(term))
    raise PatternInvalid("Match value must be String, number, true, false, or null")


def _only_item(term: dict[str, Any]) -> tuple[str, Any]:
    if len(term) != 1:
        raise PatternInvalid("Only one key allowed in match expression")
    [(operator, argument)] = term.items()
    return operator, argument


def _parse_prefix(argument: Any) -> Term:
    return _parse_affix("prefix", argument)


def _parse_suffix(argument: Any) -> Term:
    return _parse_affix("suffix", argument)


def _parse_affix(operator: str, argument: Any) -> Term:
    if isinstance(argument, dict):
        inner, text = _only_item(argument)
        if inner != "equals-ignore-case":
            raise PatternInvalid(f"Unsupported {operator} pattern: {inner}")
        return Term(f"{operator}-ignore-case", _string(inner, text).lower())
    return Term(operator, _string(operator, argument))


def _parse_ignore_case(argument: Any) -> Term:
    return Term("equals-ignore-case", _string("equals-ignore-case", argument).lower())


def _parse_wildcard(argument: Any) -> Term:
    return Term("wildcard", parse_wildcard(_string("wildcard", argument)))


def _string(operator: str, argument: Any) -> str:
    if not isinstance(argument, str):
        raise PatternInvalid(f"{operator} match pattern must be a string")
    return argument


def _parse_numeric(argument: Any) -> Term:
    bounds = parse_range(argument)
    if bounds.low == bounds.high:
        return Term("literal", bounds.low)
    return Term("numeric", bounds)


def _parse_exists(argument: Any) -> Term:
    if not isinstance(argument, bool):
        raise PatternInvalid("exists match pattern must be either true or false.")
    return Term("exists", argument)


def _parse_cidr(argument: Any) -> Term:
    text = _string("prefix", argument)  # EventBridge names it so
    if text.count("/") != 1:
        raise PatternInvalid("Malformed CIDR, one '/' required")
    address, mask = text.split("/")
    if not (mask.isascii() and mask.isdigit()):
        raise PatternInvalid("Malformed CIDR, mask bits must be an integer")
    if _address(address) is None:
        raise PatternInvalid(f"Nonstandard IP address: {address}")
    try:
        return Term("cidr", ip_network(text, strict=False))
    except ValueError:
        bits = 128 if ":" in address else 32
        raise PatternInvalid(f"Malformed CIDR, mask bits must not be above {bits}") from None


def _parse_anything_but(argument: Any) -> Term:
    if isinstance(argument, dict):
        return _parse_anything_but_nested(*_only_item(argument))
    if isinstance(argument, bool) or not isinstance(argument, str | int | float | list):
        raise PatternInvalid(
            "Value of anything-but must be an array or single string/number value."
        )
    values = argument if isinstance(argument, list) else [argument]
    if not values:
        raise PatternInvalid("Empty arrays are not allowed")
    if any(isinstance(value, bool) or not isinstance(value, str | int | float) for value in values):
        raise PatternInvalid("Inside anything but list, start|null|boolean is not supported.")
    if len({isinstance(value, str) for value in values}) > 1:
        raise PatternInvalid(
            "Inside anything but list, either all values are number or string, "
            "mixed type is not supported"
        )
    return Term("anything-but", frozenset(values))


def _parse_anything_but_nested(operator: str, argument: Any) -> Term:
    if operator not in _NESTED:
        raise PatternInvalid(f"Unsupported anything-but pattern: {operator}")
    name = "prefix/suffix" if operator in _FIX else operator
    if argument == []:
        raise PatternInvalid("Empty arrays are not allowed")
    values = argument if isinstance(argument, list) else [argument]
    texts = [_string(name, value) for value in values]
    if operator in _FIX and "" in texts:
        raise PatternInvalid("Null prefix/suffix not allowed")
    return Term("anything-but-terms", frozenset(parse_term({operator: text}) for text in texts))


_PARSERS: dict[str, Callable[[Any], Term]] = {
    "prefix": _parse_prefix,
    "suffix": _parse_suffix,
    "equals-ignore-case": _parse_ignore_case,
    "wildcard": _parse_wildcard,
    "numeric": _parse_numeric,
    "cidr": _parse_cidr,
    "exists": _parse_exists,
    "anything-but": _parse_anything_but,
}


def term_test(term: Term) -> Test:
    """Compile a term to a test of a scalar value."""
    return _TESTS[term.operator](term.argument)


def _literal_test(key: Hashable) -> Test:
    return lambda value: literal_key(value) == key


def _prefix_test(prefix: str) -> Test:
    return lambda value: isinstance(value, str) and value.startswith(prefix)


def _suffix_test(suffix: str) -> Test:
    return lambda value: isinstance(value, str) and value.endswith(suffix)


def _prefix_ignore_case_test(prefix: str) -> Test:
    return lambda value: isinstance(value, str) and value.lower().startswith(prefix)


def _suffix_ignore_case_test(suffix: str) -> Test:
    return lambda value: isinstance(value, str) and value.lower().endswith(suffix)


def _ignore_case_test(text: str) -> Test:
    return lambda value: isinstance(value, str) and value.lower() == text


def _wildcard_test(wildcard: Wildcard) -> Test:
    return lambda value: isinstance(value, str) and wildcard.matches(value)


def _numeric_test(bounds: Range) -> Test:
    return lambda value: is_number(value) and bounds.contains(value)


def _cidr_test(network: IPv4Network | IPv6Network) -> Test:
    def is_inside(value: Any) -> bool:
        address = _address(value) if isinstance(value, str) else None
        return address is not None and address in network

    return is_inside


def _exists_test(exists: bool) -> Test:
    return lambda value: exists


def _anything_but_test(values: frozenset[Hashable]) -> Test:
    return lambda value: literal_key(value) not in values


def _anything_but_terms_test(terms: frozenset[Term]) -> Test:
    tests = [term_test(term) for term in terms]
    return lambda value: not any(test(value) for test in tests)


_TESTS: dict[str, Callable[[Any], Test]] = {
    "literal": _literal_test,
    "prefix": _prefix_test,
    "suffix": _suffix_test,
    "prefix-ignore-case": _prefix_ignore_case_test,
    "suffix-ignore-case": _suffix_ignore_case_test,
    "equals-ignore-case": _ignore_case_test,
    "wildcard": _wildcard_test,
    "numeric": _numeric_test,
    "cidr": _cidr_test,
    "exists": _exists_test,
    "anything-but": _anything_but_test,
    "anything-but-terms": _anything_but_terms_test,
}


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, int | float) and value is not True and value is not False


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address of a text without a zone; None if it is none."""
    return _parsed_address(text) if len(text) <= _ADDRESS_CHARACTERS_MAX else None


_ADDRESS_CHARACTERS_MAX = 45  # of an IPv6 address that ends with an IPv4 address


@lru_cache(maxsize=limits.FILTER_ADDRESSES_MAX)
def _parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None
