"""The MD5 digests of a message, which SDKs check against their own.

    for each attribute, by name:   u32 length, name   u32 length, type   01 or 02   u32 length, value

01 means text (String, Number), 02 bytes (Binary); the type keeps its label.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
"""

import hashlib
from collections.abc import Sequence

from storage.domain.log.record_batch import Header

_TEXT, _BYTES = b"\x01", b"\x02"


def body_digest(body: bytes) -> str:
    """Return the digest of a body."""
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def attributes_digest(attributes: Sequence[Header]) -> str | None:
    """Return the digest of attributes in any order; None when there are none."""
    if not attributes:
        return None
    digest = hashlib.md5(usedforsecurity=False)
    for name, kind, value in sorted(attributes, key=_encoded_name):
        mark = _BYTES if kind.startswith("Binary") else _TEXT
        digest.update(
            b"%b%b%b%b" % (_sized(name.encode()), _sized(kind.encode()), mark, _sized(value))
        )
    return digest.hexdigest()


def content_deduplication_id(body: bytes) -> str:
    """Return the deduplication id derived from a body: the SHA-256 of the body only."""
    return hashlib.sha256(body).hexdigest()


def _encoded_name(attribute: Header) -> bytes:
    return attribute[0].encode()


def _sized(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value
