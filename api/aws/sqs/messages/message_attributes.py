"""Conversion between message attributes and headers.

A header is (name, type, value). From SQS its type is String, Number or Binary with an optional label, and its value is
UTF-8 text or bytes; numbers keep their text. A native header has no type: it is returned as String if it is text that
SQS can represent, else as Binary. Headers whose name SQS does not allow, and empty ones, are left out.
"""

import re
from collections.abc import Mapping, Sequence

from api.aws.protocol.codecs.xml import FORBIDDEN
from api.aws.sqs.errors import UNSUPPORTED_OPERATION, invalid, refuse
from api.aws.sqs.messages.traces import to_traceparent
from api.aws.sqs.shapes import AttributeValue
from storage.domain.log.record_batch import Header, Headers
from storage.domain.trace_context import noted

ATTRIBUTES_MAX = 10
TYPE_CHARACTERS_MAX = 256
NUMBER_DIGITS_MAX = 38
TRACE_CHARACTERS_MAX = 2_048  # not counted in the message size, so it needs its own limit
TRACE_HEADER = "AWSTraceHeader"
TRACE_NAME = f":{TRACE_HEADER}"
TRACE_REQUEST_HEADER = b"x-amzn-trace-id"

_NAME = re.compile(r"[\w.-]{1,256}")
_TYPE = re.compile(r"(String|Number|Binary)(\..+)?", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_NUMBER_MAGNITUDE_MAX = 128
_RESERVED = ("aws.", "amazon.")

Attributes = Mapping[str, AttributeValue]


def attributes_to_headers(attributes: Attributes | None) -> Headers:
    """Convert the message attributes of a send to headers. Raises AwsError."""
    if not attributes:
        return ()
    if len(attributes) > ATTRIBUTES_MAX:
        raise invalid(
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum "
            f"[{ATTRIBUTES_MAX}]."
        )
    return tuple([_header(name, value) for name, value in attributes.items()])


def system_attributes_to_headers(attributes: Attributes | None) -> Headers:
    """Convert the system attributes of a send to SQS's own headers. Raises AwsError."""
    if not attributes:
        return ()
    for name, value in attributes.items():
        if name != TRACE_HEADER:
            raise invalid(f"Message system attribute name '{name[:80]}' is invalid.")
        if value.data_type != "String" or not value.string_value:
            raise invalid(f"The message system attribute '{name}' must contain a String value.")
        if len(value.string_value) > TRACE_CHARACTERS_MAX:
            raise invalid(
                f"The message system attribute '{name}' must be shorter than "
                f"{TRACE_CHARACTERS_MAX} characters."
            )
    _, kind, value_bytes = _header(TRACE_HEADER, attributes[TRACE_HEADER])
    return _traced(kind, value_bytes)


def trace_to_headers(request_headers: Mapping[bytes, bytes]) -> Headers:
    """Convert the request's trace header to SQS's own headers.

    It replaces the system attribute where a call has none. A value that an attribute could not have is left out.
    """
    value = request_headers.get(TRACE_REQUEST_HEADER)
    if not value or len(value) > TRACE_CHARACTERS_MAX or text_of(value) is None:
        return ()
    return _traced("String", value)


def _traced(kind: str, value: bytes) -> Headers:
    headers: Headers = ((TRACE_NAME, kind, value),)
    context = to_traceparent(value.decode())
    return (*headers, noted(context)) if context else headers


def _header(name: str, value: AttributeValue) -> Header:
    if not is_name(name):
        raise invalid(
            f"The message attribute name '{name[:80]}' is invalid. Attribute name can contain A-Z, "
            "a-z, 0-9, underscore (_), hyphen (-), and period (.) characters, is 1 to 256 long, does "
            "not begin or end with a period nor have two together, nor begin with AWS. or Amazon."
        )
    kind = value.data_type
    if not kind:
        raise invalid(
            f"The message attribute '{name}' must contain non-empty message attribute type."
        )
    type_match = _TYPE.fullmatch(kind)
    if type_match is None or len(kind) > TYPE_CHARACTERS_MAX or FORBIDDEN.search(kind):
        raise invalid(
            f"The message attribute '{name}' has an invalid message attribute type, the set of "
            "supported type prefixes is Binary, Number, and String."
        )
    return name, kind, _value_bytes(name, type_match[1], value)


def _value_bytes(name: str, kind: str, value: AttributeValue) -> bytes:
    if value.string_list_values or value.binary_list_values:
        refuse(
            UNSUPPORTED_OPERATION,
            "Message attribute list values in SendMessage operation are not supported.",
        )
    if value.string_value and value.binary_value:
        raise invalid(f"Message (user) attribute '{name}' has more than one value.")
    if kind == "Binary":
        if not value.binary_value:
            raise _empty(name, kind)
        return value.binary_value
    text = value.string_value
    if not text:
        raise _empty(name, kind)
    if kind == "Number":
        _check_number(name, text)
    elif not text.isprintable() and FORBIDDEN.search(text):
        raise invalid(
            f"Message (user) attribute '{name}' contains characters that are not allowed."
        )
    return text.encode()


def _empty(name: str, kind: str) -> Exception:
    return invalid(
        f"Message (user) attribute '{name}' must contain a non-empty value of type '{kind}'."
    )


def _check_number(name: str, text: str) -> None:
    """Raise AwsError unless the text is a number within Amazon's documented range.

    38 digits between -10^128 and 10^126; the text itself is stored.
    """
    digits, _, exponent = text.lower().partition("e")
    bare = digits.lstrip("+-").replace(".", "")
    whole = len(digits.lstrip("+-").partition(".")[0].lstrip("0"))
    if (
        not _NUMBER.fullmatch(text)
        or len(bare.strip("0")) > NUMBER_DIGITS_MAX
        or abs(whole + int(exponent or 0)) > _NUMBER_MAGNITUDE_MAX
    ):
        raise invalid(f"Can't cast the value of message (user) attribute '{name}' to a number.")


def is_name(name: str) -> bool:
    """Return whether this can name a message attribute. Accented letters pass, as at Amazon."""
    return (
        _NAME.fullmatch(name) is not None
        and not name.startswith(".")
        and not name.endswith(".")
        and ".." not in name
        and not name.lower().startswith(_RESERVED)
    )


def representable_headers(headers: Headers) -> Headers:
    """Return the headers that SQS can represent, each with its SQS type."""
    if not headers:
        return ()
    typed = [
        header if header[1] else _typed(header)
        for header in headers
        if is_name(header[0]) and header[2]
    ]
    return tuple(typed)


def _typed(header: Header) -> Header:
    name, _, value = header
    return name, "Binary" if text_of(value) is None else "String", value


def text_of(value: bytes) -> str | None:
    """Decode bytes to text that SQS can represent; None if that is not possible."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    if not text.isprintable() and FORBIDDEN.search(text):
        return None
    return text


def chosen(headers: Headers, names: Sequence[str]) -> Headers:
    """Return the headers that a receive requests.

    By exact names, `All`, or a prefix and `.*`; the dot is not part of the prefix.
    """
    if not headers or not names:
        return ()
    if any(name in ("All", ".*", "*") for name in names):
        return headers
    beginnings = tuple([name.removesuffix(".*") for name in names if name.endswith(".*")])
    return tuple([one for one in headers if one[0] in names or one[0].startswith(beginnings)])


def attribute_values(headers: Headers) -> dict[str, AttributeValue] | None:
    """Convert headers to the message attributes of an answer; None when there are none."""
    if not headers:
        return None
    return {name: _attribute_value(kind, value) for name, kind, value in headers}


def _attribute_value(kind: str, value: bytes) -> AttributeValue:
    if kind.startswith("Binary"):
        return AttributeValue(binary_value=value, data_type=kind)
    return AttributeValue(string_value=value.decode(), data_type=kind)
