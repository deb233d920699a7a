"""Bodies: Python values and their stored form.

value           stored as                   content type
bytes           as they are                 none, unless specified
str             UTF-8                       none, unless specified
anything else   compact JSON                application/json
"""

from typing import Any

import msgspec

JSON = "application/json"
MSGPACK = "application/msgpack"


def encode_body(body: Any, content_type: str = "") -> tuple[bytes, str]:
    """Return the bytes and the content type of a body.

    Raises TypeError for values without a JSON form.
    """
    if isinstance(body, bytes):
        return body, content_type
    if isinstance(body, bytearray | memoryview):
        return bytes(body), content_type
    if isinstance(body, str):
        return body.encode(), content_type
    return msgspec.json.encode(body), content_type or JSON


def decode_json(body: bytes) -> Any:
    """Return the JSON value of a body. Raises ValueError for invalid JSON."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise ValueError(f"the body is not JSON: {error}") from None
