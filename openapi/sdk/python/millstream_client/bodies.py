"""Bodies: what a program hands over, and what lies in a queue or a stream.

handed over     kept                        content type
bytes           as they are                 none, unless said
str             UTF-8                       none, unless said
anything else   compact JSON                application/json
"""

from typing import Any

import msgspec

JSON = "application/json"
MSGPACK = "application/msgpack"


def encode_body(body: Any, content_type: str = "") -> tuple[bytes, str]:
    """The bytes and the content type of a body. Raises TypeError for what has no JSON form."""
    if isinstance(body, bytes):
        return body, content_type
    if isinstance(body, bytearray | memoryview):
        return bytes(body), content_type
    if isinstance(body, str):
        return body.encode(), content_type
    return msgspec.json.encode(body), content_type or JSON


def decode_json(body: bytes) -> Any:
    """The JSON value of a body. Raises ValueError when it is none."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise ValueError(f"the body is not JSON: {error}") from None
