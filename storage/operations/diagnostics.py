"""Findings of `millstream doctor`."""

import msgspec


class Diagnostic(msgspec.Struct, frozen=True):
    """One line of `millstream doctor`.

    `ok` is None for a warning; `hint` is the remedy.
    """

    check: str
    ok: bool | None
    detail: str
    hint: str = ""
