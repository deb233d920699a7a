"""Amazon's form of a trace context, and the W3C's.

    Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1
    00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01

What else Amazon's has (Self, Lineage, fields of one's own) has no place in the other.
"""

import re

from storage.domain.trace_context import parts_of

_ROOT = re.compile(r"1-([0-9a-f]{8})-([0-9a-f]{24})", re.ASCII | re.IGNORECASE)
_PARENT = re.compile(r"[0-9a-f]{16}", re.ASCII | re.IGNORECASE)
_SAMPLED = 0x01


def to_traceparent(header: str) -> bytes:
    """The traceparent that says the same; empty where that cannot be said, as of a root without a parent."""
    fields = dict(part.strip().partition("=")[::2] for part in header.split(";"))
    root = _ROOT.fullmatch(fields.get("Root", ""))
    parent = fields.get("Parent", "")
    if root is None or not _PARENT.fullmatch(parent):
        return b""
    flags = "01" if fields.get("Sampled") == "1" else "00"
    made = f"00-{root[1]}{root[2]}-{parent}-{flags}".lower().encode()
    return made if parts_of(made) else b""


def from_traceparent(context: bytes) -> str:
    """Amazon's form of a traceparent; empty where that means nothing."""
    parts = parts_of(context)
    if parts is None:
        return ""
    trace, span, flags = parts
    return f"Root=1-{trace[:8]}-{trace[8:]};Parent={span};Sampled={flags & _SAMPLED}"
