"""Conversion between Amazon's trace context and the W3C's.

    Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1
    00-5759e988-bd862e3fe1be46a994272793-53995c3f42cd8ad8-01

The other fields of Amazon's form (Self, Lineage, custom fields) have no equivalent in the W3C's.
"""

import re

from storage.domain.trace_context import parts_of

_ROOT = re.compile(r"1-([0-9a-f]{8})-([0-9a-f]{24})", re.ASCII | re.IGNORECASE)
_PARENT = re.compile(r"[0-9a-f]{16}", re.ASCII | re.IGNORECASE)
_SAMPLED = 0x01


def to_traceparent(header: str) -> bytes:
    """Convert an X-Ray trace header to a traceparent; empty where there is no equivalent.

    A root without a parent has none.
    """
    fields = dict(part.strip().partition("=")[::2] for part in header.split(";"))
    root = _ROOT.fullmatch(fields.get("Root", ""))
    parent = fields.get("Parent", "")
    if root is None or not _PARENT.fullmatch(parent):
        return b""
    flags = "01" if fields.get("Sampled") == "1" else "00"
    made = f"00-{root[1]}{root[2]}-{parent}-{flags}".lower().encode()
    return made if parts_of(made) else b""


def from_traceparent(context: bytes) -> str:
    """Convert a traceparent to an X-Ray trace header; empty if it is not valid."""
    parts = parts_of(context)
    if parts is None:
        return ""
    trace, span, flags = parts
    return f"Root=1-{trace[:8]}-{trace[8:]};Parent={span};Sampled={flags & _SAMPLED}"
