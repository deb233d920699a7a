"""Tag keys that AWS reserves for itself: those that begin with `aws:`, in any case."""

RESERVED_TAG = "aws: prefixed tag key names are not allowed for external use."


def is_reserved(key: str) -> bool:
    """Return whether no client may set a tag of this key."""
    return key[:4].lower() == "aws:"
